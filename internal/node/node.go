// Package node decides what a spark_node accepts, follows and refuses. It is pure: facts in,
// decisions out.
package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// fastLink is the speed in Mb/s from which an interface counts as fabric when no RDMA device says
// so: one half of a ConnectX-7 cage is about 100 Gb/s.
const fastLink = 100_000

// Observed is what a look at the node found.
type Observed struct {
	Name string
	// ManagementAddress is the IPv4 address that we talk to, or that of the default route.
	ManagementAddress string
	// FabricAddress is the identity address: the accepted one while some interface still has it,
	// else what the fabric interface has now; empty if that has none.
	FabricAddress string
	GPUs          int
	// GPUError says why nvidia-smi gave no list.
	GPUError  string
	Driver    string
	MemoryGiB int64
	// Machine tells which machine answered.
	Machine Machine
}

// Observe reads the facts. accepted is what was agreed on so far, or empty.
func Observe(facts agent.Facts, host string, accepted Accepted) Observed {
	return Observed{
		Name:              facts.Hostname,
		ManagementAddress: managementAddress(facts, host),
		FabricAddress:     fabricAddress(facts, accepted.FabricAddress),
		GPUs:              len(facts.GPUs),
		GPUError:          facts.GPUError,
		Driver:            facts.Driver,
		MemoryGiB:         facts.Memory.Total >> 30,
		Machine:           MachineOf(facts, accepted.Machine),
	}
}

// managementAddress prefers the host as written, if an interface has it.
func managementAddress(facts agent.Facts, host string) string {
	if interfaceOf(facts, host) != "" {
		return host
	}
	for _, device := range facts.Interfaces {
		if device.Name == facts.DefaultInterface {
			if address, ok := firstIPv4(device); ok {
				return address
			}
		}
	}
	return ""
}

// fabricAddress finds the identity address. An RDMA device marks the fabric; then link speed does;
// a node without either has one network only, and its address there is its identity.
func fabricAddress(facts agent.Facts, accepted string) string {
	if accepted != "" && interfaceOf(facts, accepted) != "" {
		return accepted
	}
	rdma := rdmaInterfaces(facts)
	fabric := func(device agent.Interface) bool { return rdma[device.Name] }
	if len(rdma) == 0 {
		fabric = func(device agent.Interface) bool { return device.SpeedMbps >= fastLink }
	}
	devices := slices.Clone(facts.Interfaces)
	slices.SortFunc(devices, func(a, b agent.Interface) int {
		return cmp.Or(cmp.Compare(twinHalf(a.Name), twinHalf(b.Name)), strings.Compare(a.Name, b.Name))
	})
	found := false
	for _, device := range devices {
		if !fabric(device) {
			continue
		}
		found = true
		if address, ok := firstIPv4(device); ok && device.Up {
			return address
		}
	}
	if found {
		return "" // the fabric is there and has no address: never fall back to another network
	}
	for _, device := range devices {
		if device.Name == facts.DefaultInterface {
			address, _ := firstIPv4(device)
			return address
		}
	}
	return ""
}

// rdmaInterfaces are the names of the interfaces that have an RDMA device.
func rdmaInterfaces(facts agent.Facts) map[string]bool {
	names := map[string]bool{}
	for _, device := range facts.RDMA {
		names[device.Interface] = true
	}
	return names
}

// twinHalf is 1 for the second half of a ConnectX port (enP2p1s0f0np0), which sits in another PCI
// domain, and 0 for the first (enp1s0f0np0).
func twinHalf(name string) int {
	if strings.HasPrefix(name, "enP") {
		return 1
	}
	return 0
}

func interfaceOf(facts agent.Facts, address string) string {
	wanted, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	for _, device := range facts.Interfaces {
		for _, prefix := range device.Addresses {
			if prefix.Addr() == wanted && device.Up {
				return device.Name
			}
		}
	}
	return ""
}

func firstIPv4(device agent.Interface) (string, bool) {
	for _, prefix := range device.Addresses {
		if prefix.Addr().Is4() {
			return prefix.Addr().String(), true
		}
	}
	return "", false
}

// Addresses lists the node's IPv4 addresses with their interfaces, for messages.
func Addresses(facts agent.Facts) string {
	var list []string
	for _, device := range facts.Interfaces {
		if address, ok := firstIPv4(device); ok && !strings.HasPrefix(address, "127.") {
			list = append(list, fmt.Sprintf("%s on %s", address, device.Name))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
