package diagnose

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	startWithAddress = "Start Ray on every node with --node-ip-address equal to that node's VLLM_HOST_IP; changing it needs a restart of that node's Ray, on the head of all."
	applyCluster     = "Apply the cluster again, and replace it if its plan is empty: it starts Ray with --node-ip-address equal to VLLM_HOST_IP on every node."
	applyAgain       = "Apply the cluster again."
)

// identityRules know one node known by two addresses, and ranks that do not find each other.
func identityRules() []Rule {
	return []Rule{
		{
			ID: "placement", Row: 1, Kind: Root, Fatal: true, Follow: 1,
			Any:     []string{"No available node types can fulfill resource request", "Waiting for creating a placement group of specs for", "Cannot provide a placement group"},
			Until:   []string{"distributed_init_method=", "Starting to load model"},
			Message: "No available node types can fulfill resource request {'node:192.168.200.12': 0.001, 'GPU': 1.0}",
			Cause:   "vLLM asks Ray for a GPU on the node of its VLLM_HOST_IP, and Ray knows no node by that address: it was most likely registered by its management address.",
			Fix:     startWithAddress, Here: applyCluster,
			Refine: placement,
		},
		{
			ID: "wrong-network", Row: 106, Kind: Condition, Fatal: true,
			Any:      []string{"distributed_init_method=tcp://", "remote_subscribe_addr='tcp://"},
			Pattern:  `(?:distributed_init_method=|remote_subscribe_addr=')tcp://\[?([0-9a-fA-F.:]+?)\]?:\d+`,
			Explains: []string{"rank-died", "engine-dead", "engine-failed", "nccl", "gcs", "sample-timeout", "meeting", "stuck"},
			Message:  "distributed_init_method=tcp://<management address>, and no error at all",
			Cause:    "The ranks meet at an address that is no identity address of the cluster: Ray registered its node by another address, and newer vLLM no longer asks. All traffic silently takes the wrong network.",
			Fix:      startWithAddress, Here: applyCluster,
			Refine: wrongNetwork,
		},
		{
			ID: "not-unique", Row: 2, Kind: Root, Fatal: true,
			Any:     []string{"Every node should have a unique IP address"},
			Pattern: `unique IP address\.?(?: Got (\d+) nodes.*?(\d+) unique IP address(?:es)? ?(\{[^}]*\})?)?`,
			Message: "Every node should have a unique IP address. Got 2 nodes … 1 unique IP addresses",
			Cause:   "Two nodes gave one address: the Ray of a node runs without a VLLM_HOST_IP of its own, or with another node's.",
			Fix:     "VLLM_HOST_IP must be in the environment of the Ray container of each node, with that node's own address; look for a value baked into the image or set by a launcher.",
			Here:    "Apply the cluster again, which sets VLLM_HOST_IP on each node, and look for a value baked into the image.",
			Refine:  notUnique,
		},
		{
			ID: "no-route", Row: 4, Kind: Root,
			Any:     []string{"[Errno 101] Network is unreachable", "Failed to get the IP address, using 0.0.0.0"},
			Unless:  []string{"huggingface.co", "HTTPSConnectionPool", "hf.co"},
			Message: "OSError: [Errno 101] Network is unreachable",
			Cause:   "A process guessed its own address by the route to the outside, and this node has no default route.",
			Fix:     "Pin the addresses: VLLM_HOST_IP in every container and --node-ip-address for every `ray start`; nothing may guess on a node without a default route.",
			Here:    "Apply the cluster again, which sets VLLM_HOST_IP and --node-ip-address on every node.",
		},
		{
			ID: "copied-environment", Row: 6, Kind: Contributor, Alone: true,
			Any:      []string{"Overwriting environment variable "},
			Pattern:  `Overwriting environment variable (NCCL_IB_HCA|NCCL_IB_GID_INDEX|NCCL_SOCKET_IFNAME|GLOO_SOCKET_IFNAME|TP_SOCKET_IFNAME|UCX_NET_DEVICES) from '?([^'\s]*)'? to '?([^'\s]*)'?`,
			Explains: []string{"no-interface", "wrong-interface", "gloo", "gid-index", "rdma-retry", "nccl", "nccl-unreachable", "no-rdma"},
			Message:  "Overwriting environment variable NCCL_IB_HCA from … to …, then an NCCL error on a worker",
			Cause:    "vLLM's Ray executor copied a NCCL variable of the server over a worker's own, and the nodes need different values.",
			Fix:      "List the variable in ray_non_carry_over_env_vars.json (~/.config/vllm/ in the server's container), and set it on each node.",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{
					Cause: fmt.Sprintf("vLLM's Ray executor copied %s=%s of the server over a worker's own %s, and the nodes need different values.", hit.Match[1], hit.Match[3], hit.Match[2]),
					Fix:   "List " + hit.Match[1] + " in ray_non_carry_over_env_vars.json (~/.config/vllm/ in the server's container), and set it on each node.",
					Here:  "Leave " + hit.Match[1] + " out of the deployment's env: the Ray containers have the right value for each node.",
				}
			},
		},
		{
			ID: "no-interface", Row: 7, Kind: Root,
			Any:     []string{"no socket interface found", "No usable listening interface found", "Unable to find address for: ", "Unable to find interface for", "verify NCCL_OOB_NET_IFNAME", "verify NCCL_SOCKET_IFNAME"},
			Detail:  `(?:Unable to find (?:address|interface) for:? ?\[?([\w.-]+)|device found matching (?:exactly )?([\w.,=^-]+))`,
			Message: "Bootstrap : no socket interface found; Unable to find address for: enp1s0f0np0",
			Cause:   "NCCL or Gloo was given an interface that this node does not have: the nodes are cabled on different ports, and one name is used for all.",
			Fix:     "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME must name, on each node, that node's own interface with its identity address (`ip -br -4 addr`).",
			Here:    "Apply the cluster again: the interface is looked up on each node.",
			Refine: func(hit Hit, _ Evidence) Answer {
				if name := hit.Match[1] + hit.Match[2]; name != "" {
					return Answer{Cause: "NCCL or Gloo was told to use the interface " + name + ", which this node does not have: the nodes are cabled on different ports, and one name is used for all."}
				}
				return Answer{}
			},
		},
		{
			ID: "gloo", Row: 8, Kind: Root,
			Any:     []string{"Gloo connectFullMesh failed"},
			Pattern: `Gloo connectFullMesh failed.*`,
			Message: "Gloo connectFullMesh failed with … Connection refused, remote=[127.0.1.1]",
			Cause:   "The ranks cannot reach each other by Gloo.",
			Fix:     "GLOO_SOCKET_IFNAME must name, in the Ray container of each node, the interface that holds its identity address; a host name that resolves to 127.0.1.1 in /etc/hosts is of no use.",
			Here:    "Apply the cluster again: GLOO_SOCKET_IFNAME is set on each node.",
			Refine: func(hit Hit, _ Evidence) Answer {
				if at := regexp.MustCompile(`\b127\.\d+\.\d+\.\d+`).FindString(hit.Match[0]); at != "" {
					return Answer{Cause: fmt.Sprintf("A rank offered Gloo its loopback address %s: its host name resolves to loopback and GLOO_SOCKET_IFNAME is not set there.", at)}
				}
				return Answer{}
			},
		},
		{
			ID: "wrong-interface", Row: 9, Kind: Root,
			Any:     []string{"Socket operation on non-socket"},
			Message: "NCCL WARN … Socket operation on non-socket",
			Cause:   "NCCL was given an interface that cannot carry its traffic (NCCL_SOCKET_IFNAME).",
			Fix:     "NCCL_SOCKET_IFNAME must name the interface with the identity address, on each node its own.",
			Here:    "Apply the cluster again: the interface that holds the identity address is looked up on each node.",
		},
		{
			ID: "nccl-unreachable", Row: 9, Kind: Root,
			Any:     []string{"No route to host", "Connection timed out", "Network is unreachable"},
			Pattern: `NCCL WARN.*?([cC]onnect to ([0-9a-fA-F.:]+?)(?:<\d+>|:\d+)? .*?(?:No route to host|Connection timed out|Network is unreachable))`,
			Message: "NCCL WARN … connect to 10.1.230.181<46231> failed : No route to host",
			Cause:   "A rank cannot reach another one at the address that NCCL took there.",
			Fix:     "Is it an address of the fabric? If not, NCCL_SOCKET_IFNAME names the wrong interface. If it is, test the link both ways (`ping -I`) and the firewall.",
			Here:    applyAgain,
			Refine: func(hit Hit, evidence Evidence) Answer {
				is, known := evidence.isIdentity(hit.Match[2])
				switch {
				case known && !is:
					return Answer{Cause: fmt.Sprintf("A rank cannot reach another one at %s, which is no identity address (%s): NCCL took the wrong interface.", hit.Match[2], evidence.identities())}
				default:
					return Answer{Cause: fmt.Sprintf("A rank cannot reach another one at %s, the address that NCCL took there.", hit.Match[2])}
				}
			},
		},
		{
			ID: "address-gone", Row: 12, Kind: Root,
			Any:     []string{"Cannot assign requested address"},
			Pattern: `(?:\[Errno 99\]|errno: 99|errno=99|bind).*Cannot assign requested address|Cannot assign requested address.*(?:bind|listen)`,
			Message: "[Errno 99] Cannot assign requested address",
			Cause:   "A process was told to use an address that this node no longer has: NetworkManager cleared it, or it changed after a reboot.",
			Fix:     "Give the interface its address back (`ip -br -4 addr`), and keep it there by netplan (a file of mode 600).",
		},
		{
			ID: "gcs", Row: 13, Kind: Mechanism,
			Any:     []string{"Failed to connect to GCS", "Unable to connect to GCS", "Could not connect to GCS", "Timed out while waiting for GCS"},
			Unless:  []string{"GCS may have been killed", "gcs_server.out"},
			Detail:  `GCS at(?: address)?:? *(\S+)`,
			Until:   []string{"Ray runtime started", "Connected to Ray cluster", "distributed_init_method="},
			Message: "Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds",
			Cause:   "The Ray head does not answer.",
			Fix:     "Is the head up, and started before the workers? Does a firewall (`sudo ufw status`, `nft list ruleset`), a FORWARD policy of DROP on a relay node, or a wrong address keep its port from the workers?",
			Refine:  gcs,
		},
		{
			ID: "gcs-lost", Kind: Mechanism,
			Any:     []string{"GCS may have been killed", "The GCS server is dead", "GCS is not available"},
			Message: "Failed to connect to GCS within 60 seconds. GCS may have been killed",
			Cause:   "The Ray head went away while others still used it.",
			Fix:     "Look at the head's Ray container for why (`docker logs`, `dmesg`); then start all of Ray again, the head first.",
			Here:    "Apply again: it starts all ranks together.",
		},
		{
			ID: "no-address", Row: 14, Kind: Root,
			Any:     []string{"Malformed address: ", "GCS at address :", "Missing port number in :", "--address=: "},
			Pattern: `Malformed address: *(?:$|\.|:\d|Expected)|GCS at address :\d|--address=:`,
			Message: "ValueError: Malformed address: :6379",
			Cause:   "A worker was started with a blank address of the head: the variable that should hold it is empty.",
			Fix:     "Set the head's address in the script that starts the worker.",
		},
	}
}

var askedNode = lazily(`node:([0-9a-fA-F.:]*[0-9a-fA-F])'?`)

// askedFor is the node that vLLM asks for, if it asks for one. A terminal may have broken the line inside
// the address; cut says that no whole address is there.
func askedFor(text string) (asked []string, cut bool) {
	first, _, _ := strings.Cut(text, "\n")
	for _, part := range []string{first, strings.ReplaceAll(text, "\n", "")} {
		if asked = askedNode().FindStringSubmatch(part); asked == nil {
			continue
		}
		if _, err := netip.ParseAddr(asked[1]); err == nil {
			return asked, false
		}
	}
	return nil, asked != nil
}

// placement is the famous bug: vLLM asks for node:<VLLM_HOST_IP>, Ray knows the node by another. With
// the right address the same words say that no GPU is free.
func placement(hit Hit, evidence Evidence) Answer {
	asked, cut := askedFor(hit.Text)
	if cut {
		return Answer{}
	}
	addresses := evidence.rayAddresses()
	// A free GPU is placed in milliseconds; with the right address the first 10 s may still be load.
	early := false
	if waiting := regexp.MustCompile(`of specs for (\d+) seconds`).FindStringSubmatch(hit.Text); waiting != nil {
		seconds, err := strconv.Atoi(waiting[1])
		early = err == nil && seconds < 20
	}
	if asked == nil || slices.Contains(addresses, asked[1]) {
		if early {
			return declined()
		}
		return noFreeGPU(asked, evidence)
	}
	row := 0
	cause := fmt.Sprintf("vLLM asks Ray for a GPU on the node %s (its VLLM_HOST_IP), and Ray knows no node by that address: it was most likely registered by its management address. (If `ray list nodes` has that address, it has no free GPU there.)", asked[1])
	if len(addresses) > 0 {
		cause = fmt.Sprintf("vLLM asks Ray for a GPU on the node %s (its VLLM_HOST_IP), but Ray knows its nodes as %s.", asked[1], enumerate(addresses))
		for _, address := range addresses {
			if is, known := evidence.isIdentity(address); known && !is {
				if number, words := evidence.network(address); number != 0 {
					row, cause = number, cause+" "+words
				}
			}
		}
	}
	if identities := evidence.identities(); identities != "" {
		cause += fmt.Sprintf(" The identity addresses are %s.", identities)
	}
	return Answer{Row: row, Cause: cause, Fix: startWithAddress, Here: applyCluster}
}

// noFreeGPU is the same message when the address is right.
func noFreeGPU(asked []string, evidence Evidence) Answer {
	alive := len(evidence.rayAddresses())
	if alive > 0 && alive < len(evidence.Nodes) {
		return Answer{
			Row:   28,
			Cause: fmt.Sprintf("Ray has %d of %d nodes, so there are fewer GPUs than vLLM asks for: a worker did not join.", alive, len(evidence.Nodes)),
			Fix:   "Look at the missing node's Ray log; start the head first and the workers then, with retries.",
			Here:  "Apply the cluster again: it starts the head first and waits for every worker.",
		}
	}
	cause := "Ray has fewer free GPUs than vLLM asks for: another server, or the placement group of a killed one, holds them, or a node has left."
	if asked != nil {
		cause = fmt.Sprintf("Ray knows the node %s, but has no free GPU there: another server, or the placement group of a killed one, holds it.", asked[1])
	}
	return Answer{
		Row: 27, Cause: cause,
		Fix:  "`ray status` names what is in use. Remove the left-over placement group (`ray.util.remove_placement_group`), or restart Ray.",
		Here: "Apply again: the gate before the start names who holds them. If nothing runs there, replace the cluster, which clears what is left over.",
	}
}

func wrongNetwork(hit Hit, evidence Evidence) Answer {
	address, err := netip.ParseAddr(hit.Match[1])
	if err != nil || address.IsLoopback() || address.IsUnspecified() {
		return declined()
	}
	is, known := evidence.isIdentity(hit.Match[1])
	row, words := evidence.network(hit.Match[1])
	switch {
	case is, !known && row != 19:
		return declined()
	case !known:
		return Answer{Row: row, Cause: "The ranks meet at a VPN's address. " + words}
	}
	return Answer{
		Row: row,
		Cause: strings.TrimSpace(fmt.Sprintf("The ranks meet at %s, which is no identity address of the cluster (%s): the Ray node was registered by another address, and all traffic silently takes the wrong network. %s",
			hit.Match[1], evidence.identities(), words)),
	}
}

func notUnique(hit Hit, evidence Evidence) Answer {
	if hit.Match[1] == "" {
		return Answer{}
	}
	cause := fmt.Sprintf("%s nodes answered with %s different addresses", hit.Match[1], hit.Match[2])
	if hit.Match[3] != "" {
		cause += " " + hit.Match[3]
	}
	cause += ": the Ray of a node runs without a VLLM_HOST_IP of its own, or with another node's."
	if identities := evidence.identities(); identities != "" {
		cause += fmt.Sprintf(" The identity addresses are %s.", identities)
	}
	return Answer{Cause: cause}
}

func gcs(hit Hit, evidence Evidence) Answer {
	address := strings.TrimRight(hit.Match[1], ".,:;)")
	if address == "" {
		return Answer{}
	}
	cause := "The Ray head does not answer at " + address + "."
	host := address
	if at := strings.LastIndex(address, ":"); at >= 0 {
		host = address[:at]
	}
	if host == "" {
		return declined() // Row 14 tells of that.
	}
	if row, words := evidence.network(host); row != 0 {
		return Answer{Row: row, Cause: cause + " " + words}
	}
	if is, known := evidence.isIdentity(host); known && !is {
		cause += " That is no identity address of the cluster (" + evidence.identities() + ")."
	}
	return Answer{Cause: cause}
}
