package identity

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The managed variables. RAY_NODE_IP_ADDRESS and RAY_OVERRIDE_NODE_IP_ADDRESS change nothing in
// `ray start` 2.53 and 2.60; they are set so that a value baked into an image cannot disagree.
const (
	hostIP          = "VLLM_HOST_IP"
	rayAddress      = "RAY_ADDRESS"
	rayNodeIP       = "RAY_NODE_IP_ADDRESS"
	rayOverrideIP   = "RAY_OVERRIDE_NODE_IP_ADDRESS"
	glooInterface   = "GLOO_SOCKET_IFNAME"
	ncclInterface   = "NCCL_SOCKET_IFNAME"
	tensorInterface = "TP_SOCKET_IFNAME"
	ucxDevices      = "UCX_NET_DEVICES"
	ncclHCA         = "NCCL_IB_HCA"
	ncclGIDIndex    = "NCCL_IB_GID_INDEX"
)

// Reserved are the names of the managed variables, sorted: the provider sets them on each node, and
// a user's environment must not.
func Reserved() []string {
	return []string{
		glooInterface, ncclGIDIndex, ncclHCA, ncclInterface, rayAddress, rayNodeIP, rayOverrideIP,
		tensorInterface, ucxDevices, hostIP,
	}
}

// PerNode are the managed variables whose values differ between nodes, sorted. vLLM's Ray executor
// copies the driver's VLLM_*, NCCL_* and UCX_* to every worker unless they are listed in
// ray_non_carry_over_env_vars.json; this is that list.
func PerNode() []string {
	return slices.DeleteFunc(Reserved(), func(name string) bool { return name == rayAddress })
}

// Refused are the names in a user's environment that are reserved, sorted; empty if none is.
func Refused(env map[string]string) []string {
	refused := []string{}
	for _, name := range Reserved() {
		if _, found := env[name]; found {
			refused = append(refused, name)
		}
	}
	return refused
}

// Env is the managed environment of a container on this node, in a cluster whose GCS listens on
// cluster ("192.168.200.12:6379"; empty leaves RAY_ADDRESS out, for serving without Ray). The
// variables of RDMA are there only if the node has devices for the address.
func (id Identity) Env(cluster string) map[string]string {
	env := map[string]string{
		hostIP:        id.Address,
		rayNodeIP:     id.Address,
		rayOverrideIP: id.Address,
		glooInterface: id.Interface,
		// Without "=" NCCL matches prefixes, and enp1s0f0np0 is one of enp1s0f0np0.100.
		ncclInterface:   "=" + id.Interface,
		tensorInterface: id.Interface,
		ucxDevices:      id.Interface,
	}
	if cluster != "" {
		env[rayAddress] = cluster
	}
	if len(id.HCAs) > 0 {
		env[ncclHCA] = "=" + strings.Join(id.HCAs, ",")
		if id.GIDIndex != NoGID {
			env[ncclGIDIndex] = strconv.Itoa(id.GIDIndex)
		}
	}
	return env
}

// CarriesSecret says whether a variable of that name is there to carry a secret. TOKENIZERS_PARALLELISM
// is not: what is declared is compared, and must not be masked. Secrets are refused in a declaration.
func CarriesSecret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"TOKEN", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS"},
		func(word string) bool { return upper == word || strings.HasSuffix(upper, "_"+word) })
}

// Masked is a copy of the environment in which the values of secret names read "(hidden)".
func Masked(env map[string]string) map[string]string {
	masked := maps.Clone(env)
	for name := range masked {
		if CarriesSecret(name) {
			masked[name] = "(hidden)"
		}
	}
	return masked
}
