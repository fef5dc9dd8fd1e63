package ray

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seenAsWanted is the cluster as a look finds it when nothing is wrong.
func seenAsWanted(spec Spec) map[string]Node {
	seen := Want(spec)
	for host, node := range seen {
		node.ContainerID, node.StartedAt = "c-"+host, "2026-12-01T10:00:00.123456789Z"
		seen[host] = node
	}
	return seen
}

func TestWant(t *testing.T) {
	spec := pairSpec()
	spec.Env = map[string]string{"NCCL_DEBUG": "INFO"}
	spec.Args = []string{"--num-cpus=4", "--labels", "a b"}
	want := Want(spec)
	head := Node{
		Name: "aurora-1", Role: Head, Address: "192.168.200.12", GPUs: 1, Cluster: "192.168.200.12:6379", Container: "running", Image: testImage,
		Env:     map[string]string{"NCCL_DEBUG": "INFO"},
		Command: "ray start --block --head --node-ip-address=192.168.200.12 --port=6379 --num-gpus=1 --object-store-memory=1073741824 --disable-usage-stats --include-dashboard=false --num-cpus=4 --labels 'a b'",
	}
	if diff := cmp.Diff(head, want["10.1.230.180"]); diff != "" {
		t.Error(diff)
	}
	worker := "ray start --block --address=192.168.200.12:6379 --node-ip-address=192.168.200.13 --num-gpus=1 --object-store-memory=1073741824 --num-cpus=4 --labels 'a b'"
	if got := want["10.1.230.181"].Command; got != worker {
		t.Errorf("worker: %s", got)
	}
	spec.Members[0].Address = ""
	for host, node := range Want(spec) {
		if node.Command != "" || node.Cluster != "" {
			t.Errorf("%s: a command with an unknown address: %q", host, node.Command)
		}
	}
	if env := Want(pairSpec())["10.1.230.180"].Env; env == nil || len(env) > 0 {
		t.Errorf("empty env: %#v", env)
	}
	if Address(pairSpec()) != "192.168.200.12:6379" || Address(spec) != "" || Address(Spec{}) != "" {
		t.Error("address")
	}
}

func TestLinesAndDecide(t *testing.T) {
	const head, worker = "10.1.230.180", "10.1.230.181"
	onWorker := func(change func(*Node)) func(map[string]Node) {
		return func(seen map[string]Node) {
			node := seen[worker]
			node.Env = maps.Clone(node.Env)
			change(&node)
			seen[worker] = node
		}
	}
	tests := map[string]struct {
		change func(seen map[string]Node)
		lines  []string
		decide map[string]string
	}{
		"as wanted": {change: func(map[string]Node) {}, lines: []string{}, decide: map[string]string{}},
		"missing": {
			change: onWorker(func(n *Node) { *n = Node{Container: missing, Env: map[string]string{}} }),
			lines:  []string{"aurora-2: container is missing"},
			decide: map[string]string{worker: "container is missing"},
		},
		"never looked at": {
			change: func(seen map[string]Node) { delete(seen, worker) },
			lines:  []string{"aurora-2: container is missing"},
			decide: map[string]string{worker: "container is missing"},
		},
		"exited": {
			change: onWorker(func(n *Node) { n.Container, n.ExitCode, n.Address, n.GPUs = "exited", 1, "", 0 }),
			lines:  []string{"aurora-2: container is exited (exit code 1), should be running"},
			decide: map[string]string{worker: "container is exited (exit code 1), should be running"},
		},
		"killed for memory": {
			change: onWorker(func(n *Node) { n.Container, n.ExitCode, n.OOMKilled, n.Address, n.GPUs = "exited", 137, true, "", 0 }),
			lines:  []string{"aurora-2: container is exited (exit code 137, killed for lack of memory), should be running"},
			decide: map[string]string{worker: "container is exited (exit code 137, killed for lack of memory), should be running"},
		},
		"paused": {
			change: onWorker(func(n *Node) { n.Container, n.Address, n.GPUs = "paused", "", 0 }),
			lines:  []string{"aurora-2: container is paused, should be running"},
			decide: map[string]string{worker: "container is paused, should be running"},
		},
		"no GPU": {
			change: onWorker(func(n *Node) { n.GPUs = 0 }),
			lines:  []string{"aurora-2: Ray sees 0 of 1 GPUs"},
			decide: map[string]string{worker: "Ray sees 0 of 1 GPUs"},
		},
		"more GPUs": {
			change: onWorker(func(n *Node) { n.GPUs = 2 }),
			lines:  []string{"aurora-2: Ray sees 2 GPUs, should be 1"},
			decide: map[string]string{worker: "Ray sees 2 GPUs, should be 1"},
		},
		"wrong address and environment": {
			change: onWorker(func(n *Node) { n.Address = "10.1.230.181"; n.Env["NCCL_DEBUG"] = "INFO" }),
			lines: []string{
				"aurora-2: Ray node address 10.1.230.181, should be 192.168.200.13",
				"aurora-2: environment changed by hand (NCCL_DEBUG)",
			},
			decide: map[string]string{worker: "Ray node address 10.1.230.181, should be 192.168.200.13; environment differs (NCCL_DEBUG)"},
		},
		"managed variables": {
			change: onWorker(func(n *Node) {
				n.Env["NCCL_IB_GID_INDEX"], n.Env["VLLM_HOST_IP"], n.Env["HF_TOKEN"] = "3", unset, "hf_secret"
			}),
			lines: []string{
				"aurora-2: NCCL_IB_GID_INDEX is 3, which is not what this node needs now",
				"aurora-2: VLLM_HOST_IP is not set",
				"aurora-2: environment changed by hand (HF_TOKEN)",
			},
			decide: map[string]string{worker: "NCCL_IB_GID_INDEX is 3, which is not what this node needs now; VLLM_HOST_IP is not set; environment differs (HF_TOKEN)"},
		},
		"image": {
			change: onWorker(func(n *Node) { n.Image = "ray:nightly" }),
			lines:  []string{"aurora-2: image is ray:nightly, should be " + testImage},
			decide: map[string]string{worker: "image is ray:nightly, should be " + testImage},
		},
		"command": {
			change: onWorker(func(n *Node) {
				n.Command = "ray start --block --address=192.168.200.12:6379 --num-gpus=1 --num-cpus=20 --object-store-memory=1073741824"
			}),
			lines:  []string{"aurora-2: command changed by hand (without --node-ip-address=192.168.200.13 --num-cpus=2, with --num-cpus=20)"},
			decide: map[string]string{worker: "command differs (without --node-ip-address=192.168.200.13 --num-cpus=2, with --num-cpus=20)"},
		},
		"not a member": {
			change: onWorker(func(n *Node) { n.Address, n.GPUs = "", 0 }),
			lines:  []string{"aurora-2: not a member of the cluster at 192.168.200.12:6379"},
			decide: map[string]string{worker: "not a member of the cluster at 192.168.200.12:6379"},
		},
		"frame": {
			change: onWorker(func(n *Node) { n.SpecDrift = []string{"IPC mode is private, not shareable"} }),
			lines:  []string{"aurora-2: IPC mode is private, not shareable"},
			decide: map[string]string{worker: "IPC mode is private, not shareable"},
		},
		"head gone takes all, and is the only cause": {
			change: func(seen map[string]Node) {
				seen[head] = Node{Container: missing, Env: map[string]string{}}
				node := seen[worker]
				node.Address, node.GPUs = "", 0
				seen[worker] = node
			},
			lines:  []string{"aurora-1: container is missing"},
			decide: map[string]string{head: "container is missing", worker: "the head aurora-1 is replaced"},
		},
		"GCS dead": {
			change: func(seen map[string]Node) {
				for host, node := range seen {
					node.Address, node.GPUs = "", 0
					if host == head {
						node.SpecDrift = []string{"no GCS at 192.168.200.12:6379: connection refused"}
					}
					seen[host] = node
				}
			},
			lines: []string{
				"aurora-1: not a member of the cluster at 192.168.200.12:6379",
				"aurora-1: no GCS at 192.168.200.12:6379: connection refused",
			},
			decide: map[string]string{
				head:   "not a member of the cluster at 192.168.200.12:6379; no GCS at 192.168.200.12:6379: connection refused",
				worker: "the head aurora-1 is replaced",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want, seen := Want(pairSpec()), seenAsWanted(pairSpec())
			test.change(seen)
			if diff := cmp.Diff(test.lines, Lines(want, seen)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.decide, Decide(want, seen)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecideAfterChange compares a changed declaration with what an older one made.
func TestDecideAfterChange(t *testing.T) {
	tests := map[string]struct {
		change func(*Spec)
		want   map[string]string
	}{
		"worker's address": {
			change: func(s *Spec) { s.Members[1].Address = "192.168.200.22" },
			want:   map[string]string{"10.1.230.181": "Ray node address 192.168.200.13, should be 192.168.200.22; command differs (without --node-ip-address=192.168.200.22, with --node-ip-address=192.168.200.13)"},
		},
		"head's address replaces everyone": {
			change: func(s *Spec) { s.Members[0].Address = "192.168.200.21" },
			want: map[string]string{
				"10.1.230.180": "Ray node address 192.168.200.12, should be 192.168.200.21; command differs (without --node-ip-address=192.168.200.21, with --node-ip-address=192.168.200.12)",
				"10.1.230.181": "command differs (without --address=192.168.200.21:6379, with --address=192.168.200.12:6379)",
			},
		},
		"a new worker leaves the others alone": {
			change: func(s *Spec) {
				s.Members = append(s.Members, Member{Host: "10.1.230.182", Name: "aurora-3", Role: Worker, Address: "192.168.200.14", GPUs: 1})
			},
			want: map[string]string{"10.1.230.182": "container is missing"},
		},
		"the order of workers does not matter": {
			change: func(s *Spec) {}, want: map[string]string{},
		},
		"environment": {
			change: func(s *Spec) { s.Env = map[string]string{"NCCL_DEBUG": "INFO"} },
			want: map[string]string{
				"10.1.230.180": "environment differs (NCCL_DEBUG)", "10.1.230.181": "environment differs (NCCL_DEBUG)",
			},
		},
		"address not known yet": {
			change: func(s *Spec) { s.Members[1].Address = "" },
			want:   map[string]string{"10.1.230.181": "identity address is not known yet"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, seen := pairSpec(), seenAsWanted(pairSpec())
			test.change(&spec)
			if diff := cmp.Diff(test.want, Decide(Want(spec), seen)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSessionAndTotal(t *testing.T) {
	seen := seenAsWanted(pairSpec())
	session := Session(seen)
	if len(session) != 8 || GPUTotal(seen) != 2 {
		t.Errorf("session %q, total %d", session, GPUTotal(seen))
	}
	for name, change := range map[string]func(*Node){
		"another container": func(n *Node) { n.ContainerID = "other" },
		"restarted":         func(n *Node) { n.StartedAt = "2026-12-01T10:00:01Z" },
	} {
		other := seenAsWanted(pairSpec())
		node := other["10.1.230.181"]
		change(&node)
		other["10.1.230.181"] = node
		if got := Session(other); got == session || len(got) != 8 {
			t.Errorf("%s: %q after %q", name, got, session)
		}
	}
	seen["10.1.230.181"] = Node{Container: missing}
	if got := Session(seen); got != "" {
		t.Errorf("a missing container has session %q", got)
	}
	if Session(nil) != "" || Session(Missing(pairSpec())) != "" {
		t.Error("session of nothing")
	}
}
