package node

import (
	"net"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Machine tells one machine from another. It says nothing of /etc/machine-id and SSH host keys: some
// DGX Sparks were shipped with equal ones, and both are copied with a disk.
type Machine struct {
	// Name is the MAC address that stands for the machine; empty if none can.
	Name string
	// MACs are all that can, sorted.
	MACs []string
}

// MachineOf reads the facts. accepted is the name agreed on so far: it stays while some card has it, so
// that a card that is added or taken out does not make another machine.
func MachineOf(facts agent.Facts, accepted string) Machine {
	rdma := rdmaInterfaces(facts)
	var all, soldered []string
	for _, device := range facts.Interfaces {
		if !burnedIn(device.MAC) {
			continue
		}
		all = append(all, device.MAC)
		if rdma[device.Name] {
			soldered = append(soldered, device.MAC)
		}
	}
	slices.Sort(all)
	slices.Sort(soldered)
	machine := Machine{MACs: slices.Compact(all)}
	switch {
	case slices.Contains(machine.MACs, accepted):
		machine.Name = accepted
	case len(soldered) > 0: // dongles can be swapped between nodes, and cheap ones have equal addresses
		machine.Name = soldered[0]
	case len(all) > 0:
		machine.Name = machine.MACs[0]
	}
	return machine
}

// burnedIn says that an address was given to one card by its maker, as opposed to one that the system
// made up for a bridge, a container or a virtual machine.
func burnedIn(text string) bool {
	mac, err := net.ParseMAC(text)
	const group, local = 1, 2
	return err == nil && len(mac) == 6 && mac[0]&(group|local) == 0 && slices.ContainsFunc(mac, func(part byte) bool { return part != 0 })
}

// Claim is a spark_node that stands for a machine.
type Claim struct {
	// Host is as written, Port 0 if it was not.
	Host    string
	Port    int
	Machine Machine
}

// Same says why two claims are for one machine; empty if they are not, or nobody can tell.
func Same(a, b Claim) string {
	switch {
	case strings.EqualFold(a.Host, b.Host) && a.Port == b.Port:
		return "both name this host"
	case a.Machine.owns(b.Machine.Name):
		return "both are the machine with the network card " + b.Machine.Name
	case b.Machine.owns(a.Machine.Name):
		return "both are the machine with the network card " + a.Machine.Name
	}
	return ""
}

func (m Machine) owns(name string) bool {
	return name != "" && (m.Name == name || slices.Contains(m.MACs, name))
}
