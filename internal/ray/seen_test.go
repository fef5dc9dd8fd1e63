package ray

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

func TestContainerSpec(t *testing.T) {
	spec := pairSpec()
	spec.WeightsDir = "~/models"
	spec.Env = map[string]string{"NCCL_DEBUG": "INFO", "RAY_memory_monitor_refresh_ms": "250"}
	got, err := ContainerSpec(spec, spec.Members[1], factsOf(1))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.ContainerSpec{
		Name: "ray-pair", Image: testImage, Entrypoint: []string{}, Command: Command(spec, spec.Members[1]),
		Env: map[string]string{
			"NCCL_DEBUG": "INFO", "RAY_memory_monitor_refresh_ms": "250", "RAY_num_prestart_python_workers": "0",
			"VLLM_HOST_IP": "192.168.200.13", "RAY_NODE_IP_ADDRESS": "192.168.200.13", "RAY_OVERRIDE_NODE_IP_ADDRESS": "192.168.200.13",
			"RAY_AUTH_MODE": "disabled", "TRITON_CACHE_DIR": "/root/.cache/triton", "RAY_ADDRESS": "192.168.200.12:6379", "GLOO_SOCKET_IFNAME": "enp1s0f0np0", "NCCL_SOCKET_IFNAME": "=enp1s0f0np0",
			"TP_SOCKET_IFNAME": "enp1s0f0np0", "UCX_NET_DEVICES": "enp1s0f0np0", "NCCL_IB_HCA": "=rocep1s0f0", "NCCL_IB_GID_INDEX": "3",
		},
		Mounts: []engine.Mount{
			{Source: "ray-pair-tmp", Target: "/tmp/ray", Volume: true},
			{Source: "ray-pair-cache", Target: "/root/.cache", Volume: true},
			{Source: "/home/aurora/models", Target: "/home/aurora/models", ReadOnly: true},
		},
		NetworkMode: "host", IPCMode: "shareable", SharedMemory: 10 << 30, AllGPUs: true,
		Devices: []string{"/dev/infiniband"}, CapAdd: []string{"IPC_LOCK"}, UnlimitedMemlock: true,
	}
	want.Labels = map[string]string{fleet.LabelResource: "ray_cluster", fleet.LabelName: "pair", fleet.LabelRole: "worker"}
	want.Labels[LabelDeclared] = `{"image":"spark-lab/ray:2.60.0","port":6379,"env":{"NCCL_DEBUG":"INFO","RAY_memory_monitor_refresh_ms":"250"},"weights_dir":"~/models",` +
		`"members":[{"host":"10.1.230.180","name":"aurora-1","address":"192.168.200.12","gpus":1},{"host":"10.1.230.181","name":"aurora-2","address":"192.168.200.13","gpus":1}]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	plain := factsOf(1)
	plain.RDMA = nil
	spec.Members[1].GPUs = 0
	if got, err = ContainerSpec(spec, spec.Members[1], plain); err != nil || got.Devices != nil || got.UnlimitedMemlock || got.AllGPUs {
		t.Errorf("without RDMA and GPUs: %+v, %v", got, err)
	}
	if _, err = ContainerSpec(spec, spec.Members[0], factsOf(1)); err == nil {
		t.Error("a container for an address that the node does not have")
	}
	spec.Members[0].Address = ""
	if _, err = ContainerSpec(spec, spec.Members[1], factsOf(1)); err == nil {
		t.Error("a container for a cluster without address")
	}
}

// TestSeenEnvironment is drift of variables: seen is what the container has more or less than it
// should by the node's facts of now.
func TestSeenEnvironment(t *testing.T) {
	tests := map[string]struct {
		spec  func(*Spec)
		facts func(*agent.Facts)
		image map[string]string
		env   func(map[string]string)
		want  map[string]string
	}{
		"as made":         {want: map[string]string{}},
		"image's own":     {image: map[string]string{"PATH": "/bin", "LANG": "C"}, want: map[string]string{}},
		"image's changed": {image: map[string]string{"PATH": "/bin"}, env: func(e map[string]string) { e["PATH"] = "/sbin" }, want: map[string]string{"PATH": "/sbin"}},
		"configured":      {spec: func(s *Spec) { s.Env = map[string]string{"NCCL_DEBUG": "INFO"} }, want: map[string]string{"NCCL_DEBUG": "INFO"}},
		"configured as the image has it": {
			spec: func(s *Spec) { s.Env = map[string]string{"LANG": "C"} }, image: map[string]string{"LANG": "C"},
			want: map[string]string{"LANG": "C"},
		},
		"configured as the default is": {
			spec: func(s *Spec) { s.Env = map[string]string{"RAY_memory_monitor_refresh_ms": "0"} },
			want: map[string]string{"RAY_memory_monitor_refresh_ms": "0"},
		},
		"configured, gone":    {spec: func(s *Spec) { s.Env = map[string]string{"A": "1"} }, env: func(e map[string]string) { delete(e, "A") }, want: map[string]string{}},
		"added by hand":       {env: func(e map[string]string) { e["NCCL_DEBUG"] = "INFO" }, want: map[string]string{"NCCL_DEBUG": "INFO"}},
		"wrong identity":      {env: func(e map[string]string) { e["VLLM_HOST_IP"] = "10.1.230.181" }, want: map[string]string{"VLLM_HOST_IP": "10.1.230.181"}},
		"no identity":         {env: func(e map[string]string) { delete(e, "VLLM_HOST_IP") }, want: map[string]string{"VLLM_HOST_IP": unset}},
		"default overwritten": {env: func(e map[string]string) { e["RAY_memory_monitor_refresh_ms"] = "100" }, want: map[string]string{"RAY_memory_monitor_refresh_ms": "100"}},
		"GID moved": {
			facts: func(f *agent.Facts) { f.RDMA[0].GIDs[0].Index = 5 },
			want:  map[string]string{"NCCL_IB_GID_INDEX": "3"},
		},
		"RDMA gone": {
			facts: func(f *agent.Facts) { f.RDMA = nil },
			want:  map[string]string{"NCCL_IB_GID_INDEX": "3", "NCCL_IB_HCA": "=rocep1s0f0"},
		},
		"address moved: the node tells, not the cluster": {
			facts: func(f *agent.Facts) {
				f.Interfaces[2].Addresses = []netip.Prefix{netip.MustParsePrefix("192.168.200.22/24")}
			},
			want: map[string]string{},
		},
		"address moved and identity wrong": {
			facts: func(f *agent.Facts) {
				f.Interfaces[2].Addresses = []netip.Prefix{netip.MustParsePrefix("192.168.200.22/24")}
			},
			env:  func(e map[string]string) { e["VLLM_HOST_IP"] = "10.1.230.181" },
			want: map[string]string{"VLLM_HOST_IP": "10.1.230.181"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, facts := pairSpec(), factsOf(1)
			if test.spec != nil {
				test.spec(&spec)
			}
			made, err := ContainerSpec(spec, spec.Members[1], facts)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range test.image {
				if _, set := made.Env[name]; !set {
					made.Env[name] = value
				}
			}
			if test.env != nil {
				test.env(made.Env)
			}
			if test.facts != nil {
				test.facts(&facts)
			}
			found := look{facts: facts, exists: true, imageEnv: test.image, container: engine.Container{Spec: made, Status: "running"}}
			if diff := cmp.Diff(test.want, envOf(spec, spec.Members[1], found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSeenNode(t *testing.T) {
	spec := pairSpec()
	member := spec.Members[1]
	made, err := ContainerSpec(spec, member, factsOf(1))
	if err != nil {
		t.Fatal(err)
	}
	base := func() look {
		return look{
			facts: factsOf(1), exists: true, declared: engine.Image{ID: "sha256:aaaa"},
			container: engine.Container{ID: "c1", Spec: made, ImageID: "sha256:aaaa", Status: "running", StartedAt: time.Date(2026, 12, 1, 11, 0, 0, 5, time.FixedZone("", 3600))},
		}
	}
	entry := gcs.Node{Address: "192.168.200.13", Alive: true, Total: map[string]float64{"GPU": 1}}
	want := Want(spec)[member.Host]
	want.ContainerID, want.StartedAt = "c1", "2026-12-01T10:00:00.000000005Z"
	if diff := cmp.Diff(want, nodeOf(spec, member, base(), entry, true)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Missing(spec)[member.Host], nodeOf(Spec{}, member, look{}, entry, true)); diff != "" {
		t.Error(diff)
	}
	tests := map[string]struct {
		change func(*look)
		lines  []string
	}{
		"stopped": {func(l *look) { l.container.Status, l.container.ExitCode = "exited", 137 }, []string{"aurora-2: container is exited (exit code 137), should be running"}},
		"GPU gone from the host, which Ray does not notice": {func(l *look) { l.facts.GPUs = nil }, []string{"aurora-2: Ray sees 0 of 1 GPUs"}},
		"nvidia-smi broken proves nothing":                  {func(l *look) { l.facts.GPUs, l.facts.GPUError = nil, "timeout" }, []string{}},
		"by another reference":                              {func(l *look) { l.container.Spec.Image = "sha256:aaaa" }, []string{}},
		"tag moved":                                         {func(l *look) { l.declared.ID = "sha256:bbbb" }, []string{"aurora-2: container runs image aaaa, and spark-lab/ray:2.60.0 is bbbb now"}},
		"image gone":                                        {func(l *look) { l.declared = engine.Image{} }, []string{}},
		"no labels":                                         {func(l *look) { l.container.Spec.Labels = nil }, []string{"aurora-2: container ray-pair was not made by this provider"}},
		"another frame": {func(l *look) {
			l.container.Spec.IPCMode, l.container.Spec.SharedMemory = "private", 0
		}, []string{"aurora-2: IPC mode is private, not shareable", "aurora-2: shared memory is 67108864 bytes, not 10737418240"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := base()
			test.change(&found)
			seen := Want(spec)
			seen[member.Host] = nodeOf(spec, member, found, entry, true)
			if diff := cmp.Diff(test.lines, Lines(Want(spec), seen)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGate(t *testing.T) {
	node := func(i int, address string) gcs.Node {
		return gcs.Node{
			ID: fmt.Sprint(address, i), Address: address, Hostname: factsOf(i).Hostname, Alive: true,
			Total: map[string]float64{"GPU": 1, "node:" + address: 1}, Available: map[string]float64{"GPU": 1},
		}
	}
	tests := map[string]struct {
		change func(nodes []gcs.Node, facts map[string]agent.Facts) []gcs.Node
		groups []gcs.PlacementGroup
		faults []Fault
		want   string // the first sentence
	}{
		"go": {},
		"head without the flag": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				nodes[0] = node(0, "10.1.230.180")
				return nodes
			},
			faults: []Fault{WrongAddress},
			want:   "aurora-1 is registered in Ray by 10.1.230.180 but its identity address is 192.168.200.12: ray start ran there without --node-ip-address; vLLM would ask for node:192.168.200.12 and wait 1800 s, or serve over the management network",
		},
		"the same, known by the machine's address alone": {
			change: func(nodes []gcs.Node, facts map[string]agent.Facts) []gcs.Node {
				nodes[0] = node(0, "10.1.230.180")
				nodes[0].Hostname, nodes[1].Hostname = "spark", "spark"
				for host, one := range facts {
					one.Hostname = "spark"
					facts[host] = one
				}
				return nodes
			},
			faults: []Fault{WrongAddress},
			want:   "aurora-1 is registered in Ray by 10.1.230.180 but its identity address is 192.168.200.12: ray start ran there without --node-ip-address; vLLM would ask for node:192.168.200.12 and wait 1800 s, or serve over the management network",
		},
		"worker with the head's address": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				nodes[1] = node(1, "192.168.200.12")
				return nodes
			},
			faults: []Fault{WrongAddress, SameAddress},
			want:   "aurora-2 is registered in Ray by 192.168.200.12 but its identity address is 192.168.200.13: ray start ran there with an address that is not on this machine; vLLM would ask for node:192.168.200.13 and wait 1800 s, or serve over the management network",
		},
		"worker dead": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				nodes[1].Alive, nodes[1].DeathReason = false, "received SIGTERM"
				return nodes
			},
			faults: []Fault{NotMember},
			want:   "aurora-2 (192.168.200.13) is not a member of the cluster: 1 of 2 nodes are alive; Ray's last word on it: received SIGTERM",
		},
		"worker never came": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node { return nodes[:1] },
			faults: []Fault{NotMember},
			want:   "aurora-2 (192.168.200.13) is not a member of the cluster: 1 of 2 nodes are alive",
		},
		"stranger": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				return append(nodes, node(2, "192.168.200.14"))
			},
			faults: []Fault{Stranger},
			want:   "a Ray node that is no member is alive in the cluster: aurora-3 at 192.168.200.14; vLLM may place a rank there",
		},
		"an earlier raylet of the same node": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				old := node(1, "192.168.200.13")
				old.ID = "old"
				return slices.Insert(nodes, 1, old)
			},
			faults: []Fault{Stranger},
			want:   "aurora-2 has a second Ray node alive, at 192.168.200.13: an earlier container whose end Ray has not noticed yet, or a raylet outside of ours",
		},
		"no resource of that name": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				delete(nodes[1].Total, "node:192.168.200.13")
				return nodes
			},
			faults: []Fault{WrongAddress},
			want:   "aurora-2 is registered by 192.168.200.13 but offers no resource node:192.168.200.13, which vLLM would ask for",
		},
		"no GPU": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				delete(nodes[1].Total, "GPU")
				return nodes
			},
			faults: []Fault{FewGPUs}, want: "aurora-2: Ray sees 0 of 1 GPUs",
		},
		"GPU taken, group left over": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				delete(nodes[1].Available, "GPU")
				return nodes
			},
			groups: []gcs.PlacementGroup{{ID: "0b01", State: gcs.GroupPending, Bundles: []map[string]float64{{"GPU": 1, "node:1.2.3.4": 0.001}, {"GPU": 1}}}},
			faults: []Fault{Busy, LeftOver},
			want:   "aurora-2: 1 of 1 GPUs are taken in Ray by an actor or placement group that is still there",
		},
		"free resources not told yet": {
			change: func(nodes []gcs.Node, _ map[string]agent.Facts) []gcs.Node {
				nodes[1].Available = nil
				return nodes
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			nodes := []gcs.Node{node(0, "192.168.200.12"), node(1, "192.168.200.13")}
			facts := map[string]agent.Facts{"10.1.230.180": factsOf(0), "10.1.230.181": factsOf(1)}
			if test.change != nil {
				nodes = test.change(nodes, facts)
			}
			findings := Gate(Want(pairSpec()), gcs.Table{Nodes: nodes, Groups: test.groups}, facts)
			var faults []Fault
			for _, finding := range findings {
				faults = append(faults, finding.Fault)
			}
			if diff := cmp.Diff(test.faults, faults); diff != "" {
				t.Error(diff)
			}
			if len(findings) > 0 && findings[0].Sentence != test.want {
				t.Errorf("got  %s\nwant %s", findings[0].Sentence, test.want)
			}
		})
	}
}

// TestLookAtDeadGCS proves that a GCS that is gone is something seen, and no error.
func TestLookAtDeadGCS(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		w.server.Close()
		seen := w.look(t, spec)
		if seen.GCSError == nil || seen.Nodes["10.1.230.180"].Container != running {
			t.Errorf("seen: %+v", seen)
		}
		decided := Decide(Want(spec), seen.Nodes)
		if len(decided) != 2 {
			t.Errorf("decided: %v", decided)
		}
	})
}

func TestLookCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Look(ctx, spec, w.machines); err == nil {
			t.Error("a cancelled look must not be taken for a dead cluster")
		}
	})
}

// TestEntryOf has a container that was run again: Ray counts its earlier raylet as alive for a while.
func TestEntryOf(t *testing.T) {
	entry := func(id, address string, started uint64) gcs.Node {
		return gcs.Node{ID: id, Address: address, Started: started}
	}
	for name, test := range map[string]struct {
		entries []gcs.Node
		want    string
	}{
		"nothing":             {nil, ""},
		"one at the address":  {[]gcs.Node{entry("1", "10.1.230.181", 9), entry("2", "192.168.200.13", 5)}, "2"},
		"run again":           {[]gcs.Node{entry("1", "192.168.200.13", 5), entry("2", "192.168.200.13", 9)}, "2"},
		"run again, reversed": {[]gcs.Node{entry("2", "192.168.200.13", 9), entry("1", "192.168.200.13", 5)}, "2"},
		"elsewhere":           {[]gcs.Node{entry("1", "10.1.230.181", 5), entry("2", "10.1.230.182", 9)}, "2"},
		"no time is told":     {[]gcs.Node{entry("1", "192.168.200.13", 0), entry("2", "192.168.200.13", 0)}, "1"},
	} {
		if got, found := entryOf(test.entries, "192.168.200.13"); got.ID != test.want || found != (test.want != "") {
			t.Errorf("%s: %q, want %q", name, got.ID, test.want)
		}
	}
}
