package diagnose

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Evidence is what was seen beside the log. Every field may be missing; a cause is then worded with
// what is known.
type Evidence struct {
	// Nodes by host, as the user wrote it.
	Nodes map[string]Node `json:"nodes,omitempty"`
	// Ray is the GCS's table of nodes; nil if it was not asked.
	Ray []RayNode `json:"ray_nodes,omitempty"`
	// Groups are Ray's placement groups.
	Groups []Group `json:"placement_groups,omitempty"`
	// Image is the reference that was run.
	Image string `json:"image,omitempty"`
	// Port is the one that the server shall listen on.
	Port int `json:"port,omitempty"`
	// WaitedSeconds is for how long the server had been starting.
	WaitedSeconds int64 `json:"waited_seconds,omitempty"`
	// Host is where a log comes from that does not tell.
	Host string `json:"host,omitempty"`
}

// Node is one machine.
type Node struct {
	// Identity is the address by which both Ray and vLLM should know it.
	Identity string `json:"identity,omitempty"`
	// Environment of the node's Ray container.
	Environment map[string]string `json:"environment,omitempty"`
	Container   *Container        `json:"container,omitempty"`
	ImageID     string            `json:"image_id,omitempty"`
	Facts       *agent.Facts      `json:"facts,omitempty"`
}

// Container is the state of a node's container.
type Container struct {
	Status    string `json:"status,omitempty"`
	ExitCode  int    `json:"exit_code"`
	OOMKilled bool   `json:"oom_killed,omitempty"`
}

// RayNode is an entry of the GCS's table.
type RayNode struct {
	Address  string  `json:"address"`
	Alive    bool    `json:"alive"`
	GPUs     float64 `json:"gpus"`
	FreeGPUs float64 `json:"free_gpus"`
	// ObjectStore in bytes.
	ObjectStore int64 `json:"object_store_memory,omitempty"`
}

// Group is a placement group of Ray's.
type Group struct {
	Name string `json:"name,omitempty"`
	// State as Ray says it: PENDING, CREATED, REMOVED.
	State string `json:"state"`
}

// Waited is for how long the server had been starting.
func (e Evidence) Waited() time.Duration { return time.Duration(e.WaitedSeconds) * time.Second }

// hosts are the nodes' names, sorted.
func (e Evidence) hosts() []string { return slices.Sorted(maps.Keys(e.Nodes)) }

// at is the node of a name or address; that of the default host if there is none, or the only one.
func (e Evidence) at(host string) Node {
	for _, name := range []string{e.hostOf(host), e.Host} {
		if node, known := e.Nodes[name]; known {
			return node
		}
	}
	if len(e.Nodes) == 1 {
		return e.Nodes[e.hosts()[0]]
	}
	return Node{}
}

// memory of a host, if known.
func (e Evidence) memory(host string) agent.Memory {
	if facts := e.at(host).Facts; facts != nil {
		return facts.Memory
	}
	return agent.Memory{}
}

// kernel of a host, if known.
func (e Evidence) kernel(host string) string {
	if facts := e.at(host).Facts; facts != nil {
		return facts.Kernel
	}
	return ""
}

// identities is "192.168.200.12 (10.1.230.180) and 192.168.200.13 (10.1.230.181)"; empty if none is known.
func (e Evidence) identities() string {
	var parts []string
	for _, host := range e.hosts() {
		if node := e.Nodes[host]; node.Identity != "" {
			parts = append(parts, fmt.Sprintf("%s (%s)", node.Identity, host))
		}
	}
	return enumerate(parts)
}

// isIdentity says whether an address is one of the cluster's, and whether that can be told.
func (e Evidence) isIdentity(address string) (is, known bool) {
	for _, node := range e.Nodes {
		known = known || node.Identity != ""
		is = is || node.Identity == address && address != ""
	}
	return is, known
}

// rayAddresses are those by which the GCS knows its living nodes.
func (e Evidence) rayAddresses() []string {
	var addresses []string
	for _, node := range e.Ray {
		if node.Alive {
			addresses = append(addresses, node.Address)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// hostOf is the host of a name or an address: an identity, or one that an interface has.
func (e Evidence) hostOf(address string) string {
	host, _ := e.interfaceOf(address)
	return host
}

// named is an address with its host behind it, if that is known by another name.
func (e Evidence) named(address string) string {
	if host := e.hostOf(address); host != "" && host != address {
		return address + " (" + host + ")"
	}
	return address
}

// interfaceOf finds who has an address. The name of the interface is empty where there are no facts.
func (e Evidence) interfaceOf(address string) (host string, device string) {
	wanted, err := netip.ParseAddr(address)
	for _, name := range e.hosts() {
		node := e.Nodes[name]
		if address != "" && (node.Identity == address || name == address || node.Facts != nil && node.Facts.Hostname == address) {
			host = name
		}
		if node.Facts == nil || err != nil {
			continue
		}
		for _, one := range node.Facts.Interfaces {
			if slices.ContainsFunc(one.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr() == wanted }) {
				return name, one.Name
			}
		}
	}
	return host, ""
}

// network is the row and the words for an address that should not be used: a tunnel's, Wi-Fi's, or one
// of link-local; row 0 for any other.
func (e Evidence) network(address string) (row int, words string) {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return 0, ""
	}
	_, device := e.interfaceOf(address)
	tunnel := netip.MustParsePrefix("100.64.0.0/10")
	switch {
	case strings.HasPrefix(device, "tailscale"), strings.HasPrefix(device, "wg"), strings.HasPrefix(device, "tun"), device == "" && tunnel.Contains(parsed):
		return 19, address + " is a VPN's address: Ray joins over it, and drops for its MTU and NAT."
	case strings.HasPrefix(device, "wl"):
		return 3, address + " is the Wi-Fi's address: Ray and vLLM guessed by the default route, which Wi-Fi owns."
	case parsed.IsLinkLocalUnicast():
		return 11, address + " is link-local, and such addresses are picked anew after a reboot."
	}
	return 0, ""
}

// enumerate joins with commas and an "and".
func enumerate(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
