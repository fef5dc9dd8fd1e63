package facts

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

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
			SpeedMbps:    ParseSpeed(s.text("/sys/class/net", device.Name, "speed")),
			PhysicalPort: s.text("/sys/class/net", device.Name, "phys_port_name"),
			Addresses:    prefixes(addresses),
		})
	}
	return list, errors.Join(errs...)
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

// listening gives the TCP ports on which something listens.
func (s Source) listening() ([]int, error) {
	if s.Listening != nil {
		return s.Listening()
	}
	ports := append(ParseListening(s.text("/proc/net/tcp")), ParseListening(s.text("/proc/net/tcp6"))...)
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// ParseListening gives the local ports of the sockets in state LISTEN of /proc/net/tcp or tcp6.
func ParseListening(text string) []int {
	const listen = "0A" // TCP_LISTEN of net/tcp_states.h
	ports := []int{}
	for line := range strings.Lines(text) {
		// sl local_address rem_address st …
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		_, hex, found := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if found && err == nil {
			ports = append(ports, int(port))
		}
	}
	return ports
}
