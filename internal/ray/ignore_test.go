package ray

import (
	"slices"
	"testing"
)

func TestLiving(t *testing.T) {
	spec := pairSpec()
	spec.Env = map[string]string{"A": "1", "B": "2"}
	for name, test := range map[string]struct {
		kinds  []string
		change func(*Node)
		lines  []string
	}{
		"image":              {[]string{KindImage}, func(n *Node) { n.Image = "other:1" }, []string{}},
		"command":            {[]string{KindCommand}, func(n *Node) { n.Command += " --num-cpus=4" }, []string{}},
		"a loss of GPUs":     {[]string{KindGPUCount}, func(n *Node) { n.GPUs = 0 }, []string{}},
		"env":                {[]string{KindEnv}, func(n *Node) { n.Env = map[string]string{"A": "3", "C": "4"} }, []string{}},
		"another kind":       {[]string{KindImage}, func(n *Node) { n.GPUs = 0 }, []string{"aurora-2: Ray sees 0 of 1 GPUs"}},
		"identity never":     {Kinds(), func(n *Node) { n.Address = "10.1.230.181" }, []string{"aurora-2: Ray node address 10.1.230.181, should be 192.168.200.13"}},
		"nor in a variable":  {Kinds(), func(n *Node) { n.Env["VLLM_HOST_IP"] = "10.1.230.181" }, []string{"aurora-2: VLLM_HOST_IP is 10.1.230.181, which is not what this node needs now"}},
		"nor a missing one":  {Kinds(), func(n *Node) { n.Env["VLLM_HOST_IP"] = unset }, []string{"aurora-2: VLLM_HOST_IP is not set"}},
		"a container is due": {Kinds(), func(n *Node) { *n = Node{Container: missing} }, []string{"aurora-2: container is missing"}},
		"an ended one too":   {Kinds(), func(n *Node) { n.Container = "exited" }, []string{"aurora-2: container is exited (exit code 0), should be running"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := Want(spec)
			node := seen["10.1.230.181"]
			test.change(&node)
			seen["10.1.230.181"] = node
			want := Living(Want(spec), seen, test.kinds)
			if lines := Lines(want, seen); !slices.Equal(lines, test.lines) {
				t.Errorf("lines %q, want %q", lines, test.lines)
			}
			if _, replaced := Decide(want, seen)["10.1.230.181"]; replaced != (len(test.lines) > 0) {
				t.Errorf("replaced: %v", replaced)
			}
			if len(Lines(Want(spec), seen)) == 0 {
				t.Error("nothing differs: the case tests nothing")
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	if got := Ignored(Kinds(), nil); !slices.Equal(got, Kinds()) {
		t.Errorf("nothing changed: %q", got)
	}
	if got, want := Ignored(Kinds(), []string{"env", "workers"}), []string{KindImage}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
