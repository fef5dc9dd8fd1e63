package diagnose

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// identityRules know one node known by two addresses.
func identityRules() []rule {
	return []rule{
		// Ray 2.53 to 2.60; before it is given up after 1800 s, vLLM's own line comes at 10, 30, 70 s.
		{1, `No available node types can fulfill resource request \{([^}]*)\}`, true, placement},
		{1, `Waiting for creating a placement group of specs for \d+ seconds\. specs=(\[.*?\])\.`, true, placement},
		{1, `Cannot provide a placement group (?:requiring [\d.]+ GPUs \(|of )(?:current_)?placement_group_specs=(\[.*?\])`, true, placement},
		{27, `No available node types can fulfill resource request \{([^}]*)\}`, true, noFreeGPU},
		// A free GPU is placed in milliseconds; with the right address the first 10 s may still be load.
		{27, `Waiting for creating a placement group of specs for (?:[2-9]\d|\d{3,}) seconds\. specs=(\[.*?\])\.`, true, noFreeGPU},
		{27, `Cannot provide a placement group (?:requiring [\d.]+ GPUs \(|of )(?:current_)?placement_group_specs=(\[.*?\])`, true, noFreeGPU},
		{2, `Every node should have a unique IP address\. Got (\d+) nodes.*?(\d+) unique IP address(?:es)? (\{[^}]*\})?`, true, notUnique},
		{4, `\[Errno 101\] Network is unreachable|Failed to get the IP address, using 0\.0\.0\.0`, false, fixed(
			"A process guessed its own address by the route to the outside, and this node has no default route.",
			"Addresses must be pinned on such a node: apply the cluster again, which sets VLLM_HOST_IP and --node-ip-address on every node.")},
		{8, `Gloo connectFullMesh failed[^\n]*`, false, gloo},
		// RayExecutorV2 does not ask for node:<ip>: with a wrong address it serves, over the wrong network.
		{106, `distributed_init_method=tcp://\[?([0-9a-fA-F.:]+?)\]?:\d+`, true, wrongNetwork},
		{6, `Overwriting environment variable (NCCL_\w+|UCX_\w+) from '?([^'\s]*)'? to '?([^'\s]*)'?`, false, func(match []string, _ Evidence) (string, string) {
			return fmt.Sprintf("vLLM's Ray executor copied %s=%s of the server over a worker's own %s, and the nodes need different values.", match[1], match[3], match[2]),
				"Leave " + match[1] + " out of the deployment's env: the Ray containers have the right value for each node."
		}},
	}
}

// placement is the famous bug: vLLM asks for node:<VLLM_HOST_IP>, Ray knows the node by another.
func placement(match []string, evidence Evidence) (string, string) {
	asked := regexp.MustCompile(`node:([0-9a-fA-F.:]+)'`).FindStringSubmatch(match[1])
	if asked == nil || slices.Contains(evidence.RayAddresses, asked[1]) {
		return "", ""
	}
	next := "Start the Ray containers again with --node-ip-address equal to VLLM_HOST_IP on every node: apply the cluster again, and replace it if its plan is empty."
	if len(evidence.RayAddresses) == 0 {
		return fmt.Sprintf("vLLM asks Ray for a GPU on the node %s (its VLLM_HOST_IP), and Ray knows no node by that address: the Ray node was most likely registered by its management address.",
			asked[1]), next
	}
	cause := fmt.Sprintf("vLLM asks Ray for a GPU on the node %s (its VLLM_HOST_IP), but Ray knows its nodes as %s.", asked[1], enumerate(evidence.RayAddresses))
	if len(evidence.Identity) > 0 {
		cause += fmt.Sprintf(" The identity addresses are %s.", evidence.identities())
	}
	return cause, next
}

// noFreeGPU is the same message when the address is right.
func noFreeGPU(match []string, evidence Evidence) (string, string) {
	next := "Apply again: the gate before the start names who holds them. If nothing runs there, replace the cluster, which clears what is left over."
	if asked := regexp.MustCompile(`node:([0-9a-fA-F.:]+)'`).FindStringSubmatch(match[1]); asked != nil {
		return fmt.Sprintf("Ray knows the node %s, but has no free GPU there: another server, or the placement group of a killed one, holds it.", asked[1]), next
	}
	return "Ray has fewer free GPUs than vLLM asks for: another server, or the placement group of a killed one, holds them, or a node has left.", next
}

func notUnique(match []string, evidence Evidence) (string, string) {
	cause := fmt.Sprintf("%s nodes answered with %s different addresses", match[1], match[2])
	if match[3] != "" {
		cause += " " + match[3]
	}
	cause += ": a Ray node runs without a VLLM_HOST_IP of its own, or with another node's."
	if len(evidence.Identity) > 0 {
		cause += fmt.Sprintf(" The identity addresses are %s.", evidence.identities())
	}
	return cause, "VLLM_HOST_IP must be in the environment of the Ray container of each node: apply the cluster again, and look for a value baked into the image."
}

func gloo(match []string, _ Evidence) (string, string) {
	cause := "The ranks cannot reach each other by Gloo."
	if at := regexp.MustCompile(`remote=\[(127\.[0-9.]+)\]|(127\.0\.1\.1)`).FindStringSubmatch(match[0]); at != nil {
		cause = fmt.Sprintf("A rank offered Gloo its loopback address %s%s: its host name resolves to loopback and GLOO_SOCKET_IFNAME is not set there.", at[1], at[2])
	}
	return cause, "GLOO_SOCKET_IFNAME must name, in the Ray container of each node, the interface that holds its identity address: apply the cluster again."
}

func wrongNetwork(match []string, evidence Evidence) (string, string) {
	address, err := netip.ParseAddr(match[1])
	is, known := evidence.isIdentity(match[1])
	if err != nil || address.IsLoopback() || is || !known {
		return "", ""
	}
	return fmt.Sprintf("The ranks meet at %s, which is no identity address of the cluster (%s): the Ray node was registered by another address, and all traffic would silently take the wrong network.",
			match[1], evidence.identities()),
		"Start the Ray containers again with --node-ip-address equal to the identity addresses: apply the cluster again, and replace it if its plan is empty."
}
