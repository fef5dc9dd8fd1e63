package node

import (
	"maps"
	"slices"
	"testing"
)

// decided are the rows of the failure catalogue that rules here decide from facts, each with the
// fixtures above that prove it.
var decided = []int{2, 3, 7, 10, 11, 12, 13, 15, 16, 19, 24, 34, 37, 38, 39, 40, 41, 42, 49, 52, 53, 56, 66, 67, 101, 102, 104, 105}

// elsewhere are the other rows that the catalogue marks as decidable before anything is started, and
// why no rule here does it.
var elsewhere = map[int]string{
	1:   "made impossible: VLLM_HOST_IP and --node-ip-address come from one attribute (identity.Env, ray.Command)",
	4:   "harmless: nothing guesses by the default route, the address is given",
	5:   "identity.Refused: managed variables are refused in env",
	6:   "vllm writes ray_non_carry_over_env_vars.json from identity.PerNode",
	8:   "harmless: GLOO_SOCKET_IFNAME is set on each node, and Ubuntu's hosts file says 127.0.1.1 on every healthy one",
	9:   "as 7: names of interfaces are resolved per node, from the address",
	14:  "ray.Check: a member without an address is refused",
	18:  "no rule: the halves of a port are told by phys_port_name (identity, rows 40 and 42); TestHealthyClusters has one cable",
	20:  "asks the image, not the node",
	21:  "ray.CheckImage: one image id on all nodes",
	22:  "ray's containers carry RAY_memory_monitor_refresh_ms",
	23:  "ray.Command has --object-store-memory and --num-cpus",
	25:  "each container has a /tmp/ray of its own and RAY_ADDRESS",
	29:  "the specification of the containers, compared as drift",
	30:  "a declaration's args; with ufw row 13 speaks",
	33:  "the specification of the containers has the host's network",
	35:  "resolved anew at each start from facts, never stored (identity.Resolve)",
	36:  "the specification of the containers has memlock -1 and IPC_LOCK",
	43:  "a declaration's env, not the node",
	44:  "asks the image",
	51:  "asks the image with the driver",
	54:  "asks the image",
	57:  "only the server's plan knows what it will take; page cache is given back before",
	58:  "weights evicts behind each copy",
	59:  "needs the model's size",
	60:  "a mount of the server's container",
	61:  "as 57",
	65:  "needs the model's size and a flag of the server",
	69:  "weights.Plan reads the headers of the files",
	70:  "weights: one revision, compared on all nodes",
	73:  "asks the hub",
	74:  "offline mode is set by vllm",
	76:  "needs the files' owners: weights lists them",
	77:  "contract 2 (row 16) has the routes; copies name both addresses",
	78:  "the image id is compared on all nodes at every refresh",
	80:  "asks the image; identity.Env overrides what is baked in",
	81:  "asks the image",
	83:  "asks the image",
	85:  "needs the model's size",
	92:  "ray.CheckFree and vllm's own: who listens on the port that is wanted",
	95:  "asks the image",
	96:  "sshx: host keys",
	97:  "sshx: keys with a passphrase",
	98:  "the login works, or there are no facts",
	99:  "the engine's error names the group",
	100: "harmless: nothing of ours needs root",
}

// catalogue are the rows whose detection is marked P.
var catalogue = []int{
	1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 29, 30, 33, 34, 35, 36, 37, 38, 39, 40, 41,
	42, 43, 44, 49, 51, 52, 53, 54, 56, 57, 58, 59, 60, 61, 65, 66, 67, 69, 70, 73, 74, 76, 77, 78, 80, 81, 83, 85, 92, 95, 96, 97,
	98, 99, 100, 101, 102, 104, 105,
}

func TestEveryRowHasARuleOrAReason(t *testing.T) {
	proved := map[int]bool{11: true} // TestLinkLocalPair
	for _, test := range append(brokenClusters(), brokenMachines()...) {
		proved[test.row] = true
	}
	if got := slices.Sorted(maps.Keys(proved)); !slices.Equal(got, decided) {
		t.Errorf("fixtures prove %v, decided are %v", got, decided)
	}
	for _, row := range catalogue {
		if slices.Contains(decided, row) == (elsewhere[row] != "") {
			t.Errorf("row %d: a rule, or a reason, and not both", row)
		}
	}
	for row := range elsewhere {
		if !slices.Contains(catalogue, row) {
			t.Errorf("row %d is not in the catalogue", row)
		}
	}
}
