package facts

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// rdmaFolder lists the RDMA devices. A ConnectX-7 function has one port.
const rdmaFolder = "/sys/class/infiniband"

// rdma lists the RDMA devices with the GIDs that serve an IPv4 address. A table has 256 entries, each
// a file, so the devices are read beside each other.
func (s Source) rdma(odd *notes) []agent.RDMADevice {
	names, err := s.names(rdmaFolder)
	odd.add(err)
	devices := make([]agent.RDMADevice, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() { devices[i] = s.rdmaDevice(name, odd) })
	}
	wait.Wait()
	return devices
}

func (s Source) rdmaDevice(name string, odd *notes) agent.RDMADevice {
	device := agent.RDMADevice{
		Name:      name,
		Active:    ParsePortState(s.text(rdmaFolder, name, "ports/1/state")),
		GIDs:      []agent.GID{},
		LinkLayer: s.text(rdmaFolder, name, "ports/1/link_layer"),
		Firmware:  s.text(rdmaFolder, name, "fw_ver"),
		RateGbps:  ParseRate(s.text(rdmaFolder, name, "ports/1/rate")),
		PCI:       s.pciLink(filepath.Join(rdmaFolder, name, "device")),
	}
	indexes, err := s.gidIndexes(name)
	odd.add(err)
	for _, index := range indexes {
		entry := strconv.Itoa(index)
		// Most of a table's 256 entries are zero, and the kernel fails reads of their types.
		address, found := ParseGID(s.text(rdmaFolder, name, "ports/1/gids", entry))
		if found && s.text(rdmaFolder, name, "ports/1/gid_attrs/types", entry) == "RoCE v2" {
			device.GIDs = append(device.GIDs, agent.GID{Index: index, Address: address})
		}
	}
	device.Interface, err = s.netdev(name, indexes)
	odd.add(err)
	return device
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

// pciLink reads how the PCI function behind a device is wired.
func (s Source) pciLink(device string) agent.PCILink {
	link := agent.PCILink{
		Width: ParseWidth(s.text(device, "current_link_width")), MaxWidth: ParseWidth(s.text(device, "max_link_width")),
		Speed: ParseTransfers(s.text(device, "current_link_speed")), MaxSpeed: ParseTransfers(s.text(device, "max_link_speed")),
	}
	if target, err := os.Readlink(s.path(device)); err == nil {
		link.Address = filepath.Base(target)
	}
	return link
}

// verbs lists the devices that programs open for RDMA.
func (s Source) verbs(odd *notes) []string {
	names, err := s.names("/dev/infiniband")
	odd.add(err)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "uverbs") })
}

// ParsePortState reads a port's state file, such as "4: ACTIVE".
func ParsePortState(text string) bool {
	_, state, _ := strings.Cut(text, ":")
	return strings.TrimSpace(state) == "ACTIVE"
}

// ParseRate reads a port's rate file in Gb/s, such as "200 Gb/sec (4X HDR)"; 0 if it is none.
func ParseRate(text string) int {
	number, _, found := strings.Cut(text, " Gb/sec")
	rate, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || !(rate > 0 && rate < 1e6) {
		return 0
	}
	return int(rate)
}

// ParseWidth reads a PCI link's width in lanes; a link that is down says 0, and 255 is unknown.
func ParseWidth(text string) int {
	width, err := strconv.ParseUint(text, 10, 8)
	if err != nil || width == 255 {
		return 0
	}
	return int(width)
}

// ParseTransfers reads a PCI link's speed in GT/s, such as "32.0 GT/s PCIe"; 0 if it is unknown.
func ParseTransfers(text string) float64 {
	number, _, found := strings.Cut(text, " GT/s")
	speed, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || !(speed > 0 && speed < 1e4) {
		return 0
	}
	return speed
}

// ParseGID reads a GID that embeds an IPv4 address, "0000:0000:0000:0000:0000:ffff:c0a8:c80c".
func ParseGID(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || !address.Is4In6() || address.Zone() != "" {
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}
