package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// evidenceCauses are what the evidence shows without a line of a log.
func evidenceCauses(evidence Evidence) []Cause {
	var causes []Cause
	for _, check := range []func(Evidence) []Cause{containers, rayTable, environments, differences} {
		causes = append(causes, check(evidence)...)
	}
	return causes
}

// containers judges how the nodes' containers ended.
func containers(evidence Evidence) []Cause {
	var causes []Cause
	for _, host := range evidence.hosts() {
		container := evidence.Nodes[host].Container
		switch {
		case container == nil:
		case container.OOMKilled:
			causes = append(causes, Cause{
				Row: 59, ID: "oom-killer", Kind: Root, Hosts: []string{host}, Fatal: true,
				Cause: "The kernel killed a process of the container for memory: the weights of one node, the KV cache and the page cache of the checkpoint share one memory." + stateOfMemory(evidence, host),
				Fix:   needLess,
			})
		case container.ExitCode == 137:
			causes = append(causes, Cause{
				Row: 59, ID: "killed", Kind: Mechanism, Hosts: []string{host},
				Cause: "The container was killed from outside (exit code 137): for memory, or by hand." + stateOfMemory(evidence, host),
				Fix:   "Look at `dmesg` and `journalctl -u earlyoom` of that host.",
			})
		case container.ExitCode == 135:
			causes = append(causes, Cause{
				Row: 29, ID: "bus-error", Kind: Root, Hosts: []string{host}, Fatal: true,
				Cause: "The container ended by a bus error (exit code 135): /dev/shm is too small.",
				Fix:   "Run it with --ipc host, or with --shm-size of 10 GiB or more.",
			})
		case container.ExitCode == 139:
			causes = append(causes, Cause{
				ID: "segfault", Kind: Mechanism, Hosts: []string{host},
				Cause: "A process of the container crashed in native code (exit code 139).",
				Fix:   "Its log has the stack. Try another image, and --enforce-eager.",
			})
		}
	}
	return causes
}

// rayTable judges what the GCS knows.
func rayTable(evidence Evidence) []Cause {
	var causes []Cause
	addresses := evidence.rayAddresses()
	for _, address := range addresses {
		is, known := evidence.isIdentity(address)
		if is || !known {
			continue
		}
		row, words := evidence.network(address)
		if row == 0 {
			row = 1
		}
		causes = append(causes, Cause{
			Row: row, ID: "ray-address", Kind: Condition, Hosts: hostsOf(evidence, address),
			Cause: strings.TrimSpace(fmt.Sprintf("Ray knows a node as %s, and the identity addresses are %s. Older vLLM then finds no GPU, newer vLLM serves over the wrong network. %s", address, evidence.identities(), words)),
			Fix:   startWithAddress, Here: applyCluster,
		})
	}
	if missing := len(evidence.Nodes) - len(addresses); evidence.Ray != nil && missing > 0 && len(evidence.Nodes) > 1 {
		causes = append(causes, Cause{
			Row: 28, ID: "missing-worker", Kind: Condition,
			Cause: fmt.Sprintf("Ray has %d of %d nodes: a worker did not join, or has left.", len(addresses), len(evidence.Nodes)),
			Fix:   "Look at the missing node's Ray log and at the firewall between the nodes; start the head first and the workers then, with retries.",
			Here:  applyAgain,
		})
	}
	for _, node := range evidence.Ray {
		if node.Alive && node.GPUs < 1 {
			causes = append(causes, Cause{
				Row: 26, ID: "no-gpu-here", Kind: Condition, Hosts: hostsOf(evidence, node.Address),
				Cause: "Ray has no GPU on the node " + node.Address + ".",
				Fix:   "`nvidia-smi -L` in its Ray container must list the GPU; start Ray there with --num-gpus=1.",
				Here:  applyAgain,
			})
		}
		if node.ObjectStore > 8*gib {
			causes = append(causes, Cause{
				Row: 23, ID: "object-store", Kind: Contributor, Hosts: hostsOf(evidence, node.Address),
				explains: []string{"free-memory", "out-of-memory", "kv-cache", "memory-monitor", "oom-killer"},
				Cause:    fmt.Sprintf("Ray's object store may take %d GiB of the memory, which the GPU shares.", node.ObjectStore/gib),
				Fix:      capStore,
			})
		}
	}
	living := slices.DeleteFunc(slices.Clone(evidence.Groups), func(one Group) bool { return strings.EqualFold(one.State, "REMOVED") })
	if len(living) > 1 {
		causes = append(causes, Cause{
			Row: 27, ID: "left-over-group", Kind: Condition,
			Cause: fmt.Sprintf("Ray has %d placement groups: one of a server that was killed, or a second server, holds GPUs.", len(living)),
			Fix:   "Remove the left-over one (`ray.util.remove_placement_group`), or restart Ray.",
			Here:  "If nothing else runs there, replace the cluster, which clears what is left over.",
		})
	}
	return causes
}

// environments judges the variables of the nodes' Ray containers.
func environments(evidence Evidence) []Cause {
	var causes []Cause
	users := map[string][]string{}
	for _, host := range evidence.hosts() {
		node := evidence.Nodes[host]
		if len(node.Environment) == 0 {
			continue
		}
		own := node.Environment["VLLM_HOST_IP"]
		users[own] = append(users[own], host)
		if node.Identity != "" && own != node.Identity {
			causes = append(causes, Cause{
				Row: 5, ID: "own-address", Kind: Condition, Hosts: []string{host},
				Cause: fmt.Sprintf("VLLM_HOST_IP is %q in the Ray container of %s, whose identity address is %s: a launcher, or the image, sets it.", own, host, node.Identity),
				Fix:   "Set it for each container, and look for what overrides it.", Here: applyAgain,
			})
		}
		if value, set := node.Environment["RAY_memory_monitor_refresh_ms"]; !set || value != "0" {
			causes = append(causes, Cause{
				Row: 22, ID: "monitor-on", Kind: Contributor, Hosts: []string{host}, explains: []string{"rank-died", "killed", "memory-monitor"},
				Cause: "Ray's memory monitor is on there, and counts unified memory, which holds the weights, as the host's.",
				Fix:   "Set RAY_memory_monitor_refresh_ms=0 for `ray start` on every node.",
			})
		}
		if node.Environment["NCCL_IB_DISABLE"] == "1" {
			causes = append(causes, Cause{
				Row: 38, ID: "no-rdma", Kind: Condition, Hosts: []string{host},
				Cause: "NCCL_IB_DISABLE=1 keeps NCCL on TCP, about ten times slower than RDMA.",
				Fix:   "Unset it, and set NCCL_NET=IB so that a fall-back is an error.",
			})
		}
	}
	for address, hosts := range users {
		if address != "" && len(hosts) > 1 {
			causes = append(causes, Cause{
				Row: 2, ID: "not-unique", Kind: Condition, Hosts: hosts,
				Cause: fmt.Sprintf("%s have one VLLM_HOST_IP, %s: each node needs its own.", enumerate(hosts), address),
				Fix:   "Set VLLM_HOST_IP in the Ray container of each node to that node's own address.", Here: applyAgain,
			})
		}
	}
	return causes
}

// differences judges what should be one on all nodes.
func differences(evidence Evidence) []Cause {
	var causes []Cause
	images, drivers := map[string]bool{}, map[string]bool{}
	for _, node := range evidence.Nodes {
		if node.ImageID != "" {
			images[node.ImageID] = true
		}
		if node.Facts != nil && node.Facts.Driver != "" {
			drivers[node.Facts.Driver] = true
		}
	}
	if len(images) > 1 {
		causes = append(causes, Cause{
			Row: 78, ID: "images-differ", Kind: Condition,
			Cause: "The nodes run different images: a tag was pulled again on some of them.", Fix: oneImage,
		})
	}
	if len(drivers) > 1 {
		causes = append(causes, Cause{
			Row: 52, ID: "drivers-differ", Kind: Condition,
			Cause: "The nodes have different drivers; such a pair was reported to be 2.4 times slower.",
			Fix:   "Bring driver, kernel and firmware of all nodes to one version.",
		})
	}
	return causes
}

// hostsOf is the host of an address, if it is known.
func hostsOf(evidence Evidence, address string) []string {
	if host := evidence.hostOf(address); host != "" {
		return []string{host}
	}
	return nil
}
