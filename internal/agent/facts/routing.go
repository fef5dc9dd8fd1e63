package facts

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// routing asks the kernel for its IPv4 rules and the routes of the tables that they name.
func (s Source) routing() (agent.Routing, error) {
	if s.Routing != nil {
		return s.Routing()
	}
	if s.Root != "" {
		return agent.Routing{}, nil
	}
	rules, err := syscall.NetlinkRIB(unix.RTM_GETRULE, unix.AF_INET)
	if err != nil {
		return agent.Routing{}, fmt.Errorf("read the routing rules: %w", err)
	}
	routes, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, unix.AF_INET)
	if err != nil {
		return agent.Routing{}, fmt.Errorf("read the routes: %w", err)
	}
	devices, err := net.Interfaces()
	if err != nil {
		return agent.Routing{}, fmt.Errorf("list the network devices: %w", err)
	}
	names := map[int]string{}
	for _, device := range devices {
		names[device.Index] = device.Name
	}
	return ParseRouting(rules, routes, names)
}

// ParseRouting reads the kernel's answers to RTM_GETRULE and RTM_GETROUTE. names are the devices by
// index. Routes of tables that no rule names are left out, and those of broadcast and multicast.
func ParseRouting(rules, routes []byte, names map[int]string) (agent.Routing, error) {
	var routing agent.Routing
	tables := map[int]bool{}
	err := eachMessage(rules, unix.RTM_NEWRULE, func(head [headLength]byte, attributes map[uint16][]byte) {
		rule := parseRule(head, attributes)
		tables[rule.Table] = tables[rule.Table] || rule.Action == agent.RuleLookup
		routing.Rules = append(routing.Rules, rule)
	})
	if err != nil {
		return agent.Routing{}, fmt.Errorf("read the routing rules: %w", err)
	}
	slices.SortStableFunc(routing.Rules, func(a, b agent.Rule) int { return a.Priority - b.Priority })
	err = eachMessage(routes, unix.RTM_NEWROUTE, func(head [headLength]byte, attributes map[uint16][]byte) {
		for _, route := range parseRoute(head, attributes, names) {
			if tables[route.Table] && route.Type != "" {
				routing.Routes = append(routing.Routes, route)
			}
		}
	})
	if err != nil {
		return agent.Routing{}, fmt.Errorf("read the routes: %w", err)
	}
	return routing, nil
}

// headLength is that of rtmsg and fib_rule_hdr (linux/rtnetlink.h, linux/fib_rules.h): family,
// destination's and source's length, type of service, table, three bytes, flags.
const headLength = 12

// eachMessage goes through an answer's messages of one type.
func eachMessage(answer []byte, kind uint16, visit func(head [headLength]byte, attributes map[uint16][]byte)) error {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return err
	}
	for _, message := range messages {
		if message.Header.Type == kind && len(message.Data) >= headLength && message.Data[0] == unix.AF_INET {
			visit([headLength]byte(message.Data), attributesOf(message.Data[headLength:]))
		}
	}
	return nil
}

// typeMask takes the flags (nested, byte order) off an attribute's type.
const typeMask = 1<<14 - 1

// records are the attributes or next hops that data holds: each begins with its length, has a header of
// that many bytes, and is padded to four. One that is cut short ends the list.
func records(data []byte, header int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(data) >= header {
			length := int(binary.NativeEndian.Uint16(data))
			if length < header || length > len(data) || !yield(data[:length]) {
				return
			}
			data = data[min((length+3)&^3, len(data)):]
		}
	}
}

// attributesOf splits netlink attributes.
func attributesOf(data []byte) map[uint16][]byte {
	attributes := map[uint16][]byte{}
	for one := range records(data, unix.SizeofRtAttr) {
		kind := binary.NativeEndian.Uint16(one[2:]) & typeMask
		attributes[kind] = one[unix.SizeofRtAttr:]
	}
	return attributes
}

// routeTypes are the words for the types of routes that matter to a packet for one host.
var routeTypes = map[byte]string{
	unix.RTN_UNICAST:     agent.RouteUnicast,
	unix.RTN_LOCAL:       agent.RouteLocal,
	unix.RTN_BLACKHOLE:   agent.RouteBlackhole,
	unix.RTN_UNREACHABLE: agent.RouteUnreachable,
	unix.RTN_PROHIBIT:    agent.RouteProhibit,
	unix.RTN_THROW:       agent.RouteThrow,
}

func parseRoute(head [headLength]byte, attributes map[uint16][]byte, names map[int]string) []agent.Route {
	flags := binary.NativeEndian.Uint32(head[8:])
	route := agent.Route{
		Table: table(head, attributes, unix.RTA_TABLE), Type: routeTypes[head[7]], TOS: int(head[3]),
		Destination: prefix(attributes[unix.RTA_DST], head[1]),
		Interface:   names[number(attributes[unix.RTA_OIF])],
		Gateway:     address(attributes[unix.RTA_GATEWAY]),
		Source:      address(attributes[unix.RTA_PREFSRC]),
		Metric:      number(attributes[unix.RTA_PRIORITY]),
		MTU:         number(attributesOf(attributes[unix.RTA_METRICS])[unix.RTAX_MTU]),
		Dead:        flags&unix.RTNH_F_DEAD != 0,
	}
	if !route.Destination.IsValid() {
		return nil
	}
	hops, several := attributes[unix.RTA_MULTIPATH]
	if !several {
		return []agent.Route{route}
	}
	var list []agent.Route
	for one := range records(hops, unix.SizeofRtNexthop) {
		hop := route
		hop.Interface = names[int(int32(binary.NativeEndian.Uint32(one[4:])))] //nolint:gosec // The kernel's own type.
		hop.Gateway = address(attributesOf(one[unix.SizeofRtNexthop:])[unix.RTA_GATEWAY])
		hop.Dead = one[2]&unix.RTNH_F_DEAD != 0
		list = append(list, hop)
	}
	return list
}

// prefix of an attribute with an address; without one it is 0.0.0.0/0.
func prefix(data []byte, length byte) netip.Prefix {
	if length == 0 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(address(data), int(length)).Masked()
}

func address(data []byte) netip.Addr {
	if len(data) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(data))
}

// number reads a value of 32 bits; 0 if it is not there, or no count.
func number(data []byte) int {
	if len(data) != 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(data))
}

// table is in the header if it fits there.
func table(head [headLength]byte, attributes map[uint16][]byte, kind uint16) int {
	if wide, found := attributes[kind]; found && len(wide) == 4 {
		return number(wide)
	}
	return int(head[4])
}
