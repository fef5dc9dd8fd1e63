// Package identity turns one node's facts and its identity address into everything that must agree
// with that address: the interface, the RDMA devices, the GID index and the environment variables
// by which Ray, vLLM, Gloo, NCCL and UCX learn them. Values are resolved from facts at each start
// and never stored: interface names differ between nodes, and GID indices move after a reboot.
package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// NoGID is the GIDIndex of an identity without a RoCE v2 entry for its address.
const NoGID = -1

// Identity is one node as its peers shall know it.
type Identity struct {
	// Address is the identity address, in canonical form.
	Address string
	// Interface is the netdev that holds the address.
	Interface string
	// HCAs are the active RDMA devices of that netdev first, then those of the twin half of the
	// same port that can be used with the same GID index. Empty without RDMA.
	HCAs []string
	// GIDIndex is the RoCE v2 entry that embeds Address, or NoGID.
	GIDIndex int
	// LeftOut names RDMA devices of the port that are not in HCAs, with the reason in words. One
	// half left out halves the link (about 100 of 200 Gb/s).
	LeftOut map[string]string
}

// Error says why a node cannot be known by an address.
type Error struct {
	// Hostname is the node's own name, Address what was asked for.
	Hostname, Address string
	// Reason completes the sentence "aurora-1 cannot be known by 192.168.200.12: …".
	Reason string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s cannot be known by %q: %s", e.Hostname, e.Address, e.Reason)
}

// Resolve finds what belongs to the identity address on the node whose facts are given. It fails
// with an [*Error] if the address is not on an interface that is up.
func Resolve(facts agent.Facts, address string) (Identity, error) {
	fail := func(format string, args ...any) (Identity, error) {
		return Identity{}, &Error{Hostname: facts.Hostname, Address: address, Reason: fmt.Sprintf(format, args...)}
	}
	want, err := netip.ParseAddr(address)
	if err != nil {
		return fail("it is not an IP address")
	}
	want = want.Unmap()
	at := slices.IndexFunc(facts.Interfaces, func(one agent.Interface) bool { return holds(one, want) })
	if at < 0 {
		return fail("no interface holds it; the node has %s", addresses(facts))
	}
	own := facts.Interfaces[at]
	if !own.Up {
		return fail("interface %s holds it and is down", own.Name)
	}
	id := Identity{Address: want.String(), Interface: own.Name, GIDIndex: NoGID, LeftOut: map[string]string{}}
	id.addOwn(facts.RDMA, want)
	id.addTwin(facts, own)
	return id, nil
}

// addOwn takes the RDMA devices of the identity interface itself.
func (id *Identity) addOwn(devices []agent.RDMADevice, want netip.Addr) {
	for _, device := range devices {
		if device.Interface != id.Interface {
			continue
		}
		if !device.Active {
			id.LeftOut[device.Name] = "its port is not active"
			continue
		}
		index := gidOf(device, want)
		if id.GIDIndex == NoGID {
			id.GIDIndex = index
		}
		if index != id.GIDIndex {
			id.LeftOut[device.Name] = fmt.Sprintf("%s is not its GID %d", want, id.GIDIndex)
			continue
		}
		id.HCAs = append(id.HCAs, device.Name)
	}
}

// addTwin takes the other PCIe half of the same port. NCCL applies one GID index to all devices of
// a rank, so a half whose entry at that index is no RoCE v2 entry of an IPv4 address would fail
// every connection; it is left out.
func (id *Identity) addTwin(facts agent.Facts, own agent.Interface) {
	if own.PhysicalPort == "" || len(id.HCAs) == 0 {
		return
	}
	for _, device := range facts.RDMA {
		twin := slices.IndexFunc(facts.Interfaces, func(one agent.Interface) bool {
			return one.Name == device.Interface && one.Name != own.Name && one.PhysicalPort == own.PhysicalPort
		})
		switch {
		case twin < 0:
		case !device.Active:
			id.LeftOut[device.Name] = "its port is not active"
		case len(device.GIDs) == 0:
			id.LeftOut[device.Name] = fmt.Sprintf("%s has no IPv4 address, so it has no RoCE v2 GID", device.Interface)
		case id.GIDIndex != NoGID && !slices.ContainsFunc(device.GIDs, func(gid agent.GID) bool { return gid.Index == id.GIDIndex }):
			id.LeftOut[device.Name] = fmt.Sprintf("its GID %d is no RoCE v2 entry of an IPv4 address, and NCCL uses one index for all devices", id.GIDIndex)
		default:
			id.HCAs = append(id.HCAs, device.Name)
		}
	}
}

// gidOf returns the lowest index whose GID embeds the address, or NoGID.
func gidOf(device agent.RDMADevice, want netip.Addr) int {
	found := NoGID
	for _, gid := range device.GIDs {
		if gid.Address.Unmap() == want && (found == NoGID || gid.Index < found) {
			found = gid.Index
		}
	}
	return found
}

// holds says whether the interface has the address.
func holds(one agent.Interface, want netip.Addr) bool {
	return slices.ContainsFunc(one.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr().Unmap() == want })
}

// addresses lists what the node has, for the error.
func addresses(facts agent.Facts) string {
	var list []string
	for _, one := range facts.Interfaces {
		for _, prefix := range one.Addresses {
			if addr := prefix.Addr(); addr.Is4() && !addr.IsLoopback() {
				list = append(list, fmt.Sprintf("%s on %s", addr, one.Name))
			}
		}
	}
	if len(list) == 0 {
		return "no IPv4 address"
	}
	return strings.Join(list, ", ")
}
