package facts

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// netFolder lists the network devices.
const netFolder = "/sys/class/net"

// interfaces lists the network devices, each with what /sys knows of it.
func (s Source) interfaces() ([]agent.Interface, error) {
	if s.Interfaces != nil {
		return s.Interfaces()
	}
	devices, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network devices: %w", err)
	}
	list := make([]agent.Interface, 0, len(devices))
	var errs []error
	for _, device := range devices {
		addresses, err := device.Addrs()
		if err != nil {
			errs = append(errs, fmt.Errorf("list the addresses of %s: %w", device.Name, err))
		}
		list = append(list, agent.Interface{
			Name: device.Name,
			// A device that is set up but has no carrier (a cable that is out) is not up.
			Up:           device.Flags&net.FlagUp != 0 && device.Flags&net.FlagRunning != 0,
			MTU:          device.MTU,
			SpeedMbps:    ParseSpeed(s.text(netFolder, device.Name, "speed")),
			PhysicalPort: s.text(netFolder, device.Name, "phys_port_name"),
			Addresses:    prefixes(addresses),
			MAC:          device.HardwareAddr.String(),
			Kind:         s.kind(device.Name),
		})
	}
	return list, errors.Join(errs...)
}

// kind is what a network device is, as far as /sys says.
func (s Source) kind(name string) string {
	if kind := ParseDeviceType(s.text(netFolder, name, "uevent")); kind != "" {
		return kind
	}
	if s.exists(netFolder, name, "tun_flags") {
		return "tun"
	}
	return ""
}

// ParseDeviceType gives DEVTYPE of a uevent file, or nothing.
func ParseDeviceType(text string) string {
	for line := range strings.Lines(text) {
		if kind, found := strings.CutPrefix(line, "DEVTYPE="); found {
			return strings.TrimSpace(kind)
		}
	}
	return ""
}

// Addresses are the node's own, of all devices.
func (s Source) Addresses() ([]netip.Addr, error) {
	var own []netip.Addr
	if s.Interfaces != nil {
		devices, err := s.Interfaces()
		for _, device := range devices {
			for _, prefix := range device.Addresses {
				own = append(own, prefix.Addr())
			}
		}
		return own, err
	}
	found, err := net.InterfaceAddrs()
	for _, prefix := range prefixes(found) {
		own = append(own, prefix.Addr())
	}
	return own, err
}

func prefixes(addresses []net.Addr) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(addresses))
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			list = append(list, prefix)
		}
	}
	return list
}

// sysctls reads what decides how addresses are answered for and by which way packets may come.
func (s Source) sysctls(interfaces []agent.Interface) map[string]int {
	values := map[string]int{}
	read := func(name string) {
		path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		if value, err := strconv.Atoi(s.text(path)); err == nil {
			values[name] = value
		}
	}
	read("net.ipv4.ip_forward")
	devices := []string{"all"}
	for _, device := range interfaces {
		// A name with a dot (a VLAN's) is written otherwise by sysctl, and is no fabric's.
		if len(device.Addresses) > 0 && !strings.Contains(device.Name, ".") {
			devices = append(devices, device.Name)
		}
	}
	for _, device := range devices {
		for _, setting := range []string{"rp_filter", "arp_ignore", "arp_announce"} {
			read("net.ipv4.conf." + device + "." + setting)
		}
	}
	return values
}

// ParseSpeed reads a device's speed file, in Mb/s. A device without a link says -1.
func ParseSpeed(text string) int {
	const fastest = 10_000_000 // Older kernels say 4294967295 for unknown.
	speed, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || speed < 0 || speed > fastest {
		return 0
	}
	return speed
}

// ParseDefaultRoute gives the device of the default route with the lowest metric in /proc/net/route.
func ParseDefaultRoute(text string) string {
	const flagUp = 1 // RTF_UP of linux/route.h
	best, lowest := "", math.MaxInt
	for line := range strings.Lines(text) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[1] != "00000000" || fields[7] != "00000000" {
			continue
		}
		flags, err := strconv.ParseUint(fields[3], 16, 32)
		metric, metricErr := strconv.Atoi(fields[6])
		if err != nil || metricErr != nil || flags&flagUp == 0 {
			continue
		}
		if metric < lowest {
			best, lowest = fields[0], metric
		}
	}
	return best
}
