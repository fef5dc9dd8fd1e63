package facts

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// rdmaFolder lists the RDMA devices. A ConnectX-7 function has one port.
const rdmaFolder = "/sys/class/infiniband"

// rdma lists the RDMA devices with the GIDs that serve an IPv4 address.
func (s Source) rdma() ([]agent.RDMADevice, error) {
	names, err := s.names(rdmaFolder)
	if err != nil {
		return nil, err
	}
	devices := make([]agent.RDMADevice, 0, len(names))
	for _, name := range names {
		device := agent.RDMADevice{
			Name:   name,
			Active: ParsePortState(s.text(rdmaFolder, name, "ports/1/state")),
			GIDs:   []agent.GID{},
		}
		indexes, err := s.gidIndexes(name)
		if err != nil {
			return nil, err
		}
		for _, index := range indexes {
			entry := strconv.Itoa(index)
			// Most of a table's 256 entries are zero, and the kernel fails reads of their types.
			address, found := ParseGID(s.text(rdmaFolder, name, "ports/1/gids", entry))
			if found && s.text(rdmaFolder, name, "ports/1/gid_attrs/types", entry) == "RoCE v2" {
				device.GIDs = append(device.GIDs, agent.GID{Index: index, Address: address})
			}
		}
		if device.Interface, err = s.netdev(name, indexes); err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// netdev is the network device of port 1: by the GID table, which is kept per port, else by the
// PCI function, which is shared by the ports.
func (s Source) netdev(device string, indexes []int) (string, error) {
	for _, index := range indexes {
		if name := s.text(rdmaFolder, device, "ports/1/gid_attrs/ndevs", strconv.Itoa(index)); name != "" {
			return name, nil
		}
	}
	names, err := s.names(rdmaFolder, device, "device/net")
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// gidIndexes lists a GID table's entries in order.
func (s Source) gidIndexes(device string) ([]int, error) {
	names, err := s.names(rdmaFolder, device, "ports/1/gids")
	if err != nil {
		return nil, err
	}
	indexes := make([]int, 0, len(names))
	for _, name := range names {
		if index, err := strconv.Atoi(name); err == nil {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes, nil
}

// ParsePortState reads a port's state file, such as "4: ACTIVE".
func ParsePortState(text string) bool {
	_, state, _ := strings.Cut(text, ":")
	return strings.TrimSpace(state) == "ACTIVE"
}

// ParseGID reads a GID that embeds an IPv4 address, "0000:0000:0000:0000:0000:ffff:c0a8:c80c".
func ParseGID(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || !address.Is4In6() || address.Zone() != "" {
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}
