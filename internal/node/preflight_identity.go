package node

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// tunnels are kinds of interfaces whose packets are wrapped and sent over another one.
var tunnels = []string{"tun", "wireguard", "vxlan", "geneve", "gre", "gretap", "ipip", "sit"}

// overlay: Ray over a VPN joins, and drops under load.
func overlay(one placed, _ []placed) *Finding {
	if !slices.Contains(tunnels, one.device.Kind) {
		return nil
	}
	return &Finding{
		Severity: Error, Row: 19, Summary: fmt.Sprintf("%s: %s is a tunnel", one.name(), one.device.Name),
		Cause: fmt.Sprintf("The identity address %s of %s is on %s (%s). Over a VPN Ray joins and then drops: small packets, translated addresses.", one.address, one.name(), one.device.Name, one.device.Kind),
		Fix:   "Choose the address of a physical interface as fabric_address.",
	}
}

// wireless: an identity on Wi-Fi moves, and is slow.
func wireless(one placed, _ []placed) *Finding {
	if one.device.Kind != "wlan" {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 3, Summary: fmt.Sprintf("%s: %s is Wi-Fi", one.name(), one.device.Name),
		Cause: fmt.Sprintf("The identity address %s of %s is on the wireless interface %s: slow, and another address after the next roaming.", one.address, one.name(), one.device.Name),
		Fix:   "Choose the address of the fabric or of the wired network as fabric_address.",
	}
}

// secondInterface: two interfaces in one subnet break routing, ARP and Ray. In a link-local network
// all interfaces are in one subnet; whether that works is for the routes to say, and linkLocal warns.
func secondInterface(one placed, _ []placed) *Finding {
	if one.prefix.Bits() == one.address.BitLen() || one.address.IsLinkLocalUnicast() {
		return nil
	}
	for _, device := range one.Facts.Interfaces {
		for _, prefix := range device.Addresses {
			if device.Name == one.device.Name || !device.Up || !one.prefix.Contains(prefix.Addr()) {
				continue
			}
			return &Finding{
				Severity: Error, Row: 10, Summary: fmt.Sprintf("%s: %s and %s are in one subnet", one.name(), one.device.Name, device.Name),
				Cause: fmt.Sprintf("%s has %s on %s and %s on %s, both in %s. Packets then leave by one and are answered by the other; joining Ray or placing ranks hangs without a word.",
					one.name(), one.address, one.device.Name, prefix.Addr(), device.Name, one.prefix),
				Fix: fmt.Sprintf("Give %s a subnet of its own (netplan), the same on all nodes: each half of a port has its own /24.", device.Name),
			}
		}
	}
	return nil
}

// otherSubnet: all identity addresses lie in one subnet, the head's.
func otherSubnet(all []placed) ([]string, *Finding) {
	if len(all) < 2 {
		return nil, nil
	}
	head := all[0]
	var outside []placed
	for _, one := range all[1:] {
		if !head.prefix.Contains(one.address) || !one.prefix.Contains(head.address) {
			outside = append(outside, one)
		}
	}
	if len(outside) == 0 {
		return nil, nil
	}
	other := outside[0]
	return append([]string{head.Host}, hosts(outside)...), &Finding{
		Severity: Error, Row: 13, Summary: fmt.Sprintf("%s and %s are in different subnets", head.name(), names(outside)),
		Cause: fmt.Sprintf("%s has the identity address %s (subnet %s, on %s) and %s has %s (subnet %s, on %s). Ray's nodes would talk by a way around, or not at all.",
			head.name(), head.address, head.prefix, head.device.Name, other.name(), other.address, other.prefix, other.device.Name),
		Fix: "Give the nodes addresses of one subnet on the interfaces that are cabled to each other (netplan), or choose others with fabric_address.",
	}
}

// wrongWay: traffic to each peer leaves by the identity interface with the identity address, bound or
// not.
func wrongWay(one placed, all []placed) *Finding {
	var wrong []placed
	var first Way
	for _, peer := range all {
		if peer.Host == one.Host || peer.address == one.address || !one.prefix.Contains(peer.address) {
			continue // What is in another subnet is told as that.
		}
		for _, from := range []netip.Addr{{}, one.address} {
			ways := Ways(one.Facts, from, peer.address)
			bad := slices.IndexFunc(ways, func(way Way) bool { return !one.right(way) })
			if bad < 0 {
				continue
			}
			if len(wrong) == 0 {
				first = ways[bad]
			}
			wrong = append(wrong, peer)
			break
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	peer := wrong[0]
	return &Finding{
		Severity: Error, Row: 16, Summary: fmt.Sprintf("%s: traffic to %s does not leave by %s", one.name(), names(wrong), one.device.Name),
		Cause: fmt.Sprintf("On %s, packets to %s (%s) %s, and not by %s with the source %s. Answers then come by another way than questions, or not at all.",
			one.name(), peer.address, peer.name(), first.words(), one.device.Name, one.address),
		Fix: fmt.Sprintf("See there: ip route get %s, ip rule. Remove the route that leads astray (netplan keeps it if it came from there).", peer.address),
	}
}

// right says whether packets leave as the identity wants. An unknown source is not held against it.
func (p placed) right(way Way) bool {
	return way.Type == agent.RouteUnicast && way.Interface == p.device.Name && (!way.Source.IsValid() || way.Source == p.address)
}

// words completes "packets to X …".
func (w Way) words() string {
	switch w.Type {
	case "":
		return "have no route"
	case agent.RouteLocal:
		return "stay on the node, which has that address too"
	case agent.RouteUnicast:
		text := "leave by " + w.Interface
		if w.Gateway.IsValid() {
			text += " via " + w.Gateway.String()
		}
		if w.Source.IsValid() {
			text += " with the source " + w.Source.String()
		}
		return text
	}
	return "are dropped (" + w.Type + ")"
}

// relayOff: in a ring a node passes on what is for others, if its kernel may.
func relayOff(one placed, all []placed) *Finding {
	for _, peer := range all {
		if peer.Host == one.Host {
			continue
		}
		for _, way := range Ways(one.Facts, netip.Addr{}, peer.address) {
			at := slices.IndexFunc(all, func(other placed) bool { return way.Gateway.IsValid() && has(other.Facts, way.Gateway) })
			if at < 0 {
				continue
			}
			relay := all[at]
			forward, known := relay.Facts.Sysctls["net.ipv4.ip_forward"]
			var reason string
			switch {
			case known && forward == 0:
				reason = "its kernel forwards nothing (net.ipv4.ip_forward = 0)"
			case relay.Facts.Firewall.Forward == "DROP":
				reason = "its packet filter drops what is forwarded (policy of FORWARD; Docker sets it) unless a rule allows it"
			default:
				continue
			}
			finding := &Finding{
				Severity: Error, Row: 15, Summary: fmt.Sprintf("%s does not pass on what %s sends to %s", relay.name(), one.name(), peer.name()),
				Cause: fmt.Sprintf("%s reaches %s (%s) through %s, and %s.", one.name(), peer.name(), peer.address, relay.name(), reason),
				Fix:   "Cable the nodes directly or by a switch, or let the relay forward: sudo sysctl -w net.ipv4.ip_forward=1; sudo iptables -I DOCKER-USER -i <fabric> -o <fabric> -j ACCEPT.",
			}
			if forward != 0 {
				finding.Severity = Warning
			}
			return finding
		}
	}
	return nil
}

func has(facts agent.Facts, address netip.Addr) bool {
	return slices.ContainsFunc(facts.Interfaces, func(device agent.Interface) bool {
		return slices.ContainsFunc(device.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr() == address })
	})
}

// missingGID: RoCE without a v2 entry for the address ends in a time-out of the first connection.
func missingGID(one placed, _ []placed) *Finding {
	for _, device := range one.Facts.RDMA {
		if device.Interface != one.device.Name || !device.Active || device.LinkLayer != "Ethernet" ||
			slices.ContainsFunc(device.GIDs, func(gid agent.GID) bool { return gid.Address == one.address }) {
			continue
		}
		return &Finding{
			Severity: Error, Row: 34, Summary: fmt.Sprintf("%s: %s has no RoCE v2 entry for %s", one.name(), device.Name, one.address),
			Cause: fmt.Sprintf("The GID table of %s on %s has no RoCE v2 entry that embeds %s, so NCCL's first connection would end with \"ibv_modify_qp failed with 110 Connection timed out\".", device.Name, one.name(), one.address),
			Fix:   fmt.Sprintf("Set the address on %s again (sudo netplan apply) and look: show_gids, or /sys/class/infiniband/%s/ports/1/gids.", device.Interface, device.Name),
		}
	}
	return nil
}

// halfUnused: a port has two halves of about 100 Gb/s, and one alone is half of it. A cluster whose
// nodes all leave the second half without address has chosen that: decoding is no slower for it.
func halfUnused(one placed, all []placed) *Finding {
	id, err := identity.Resolve(one.Facts, one.Address)
	if err != nil || len(id.HCAs) != 1 || len(id.LeftOut) == 0 || len(one.halves()) < 2 && !slices.ContainsFunc(all, placed.usesBoth) {
		return nil
	}
	var reasons []string
	for _, device := range slices.Sorted(maps.Keys(id.LeftOut)) {
		reasons = append(reasons, device+": "+id.LeftOut[device])
	}
	return &Finding{
		Severity: Warning, Row: 40, Summary: fmt.Sprintf("%s: half of the link is unused", one.name()),
		Cause: fmt.Sprintf("NCCL will use %s on %s, about 100 of 200 Gb/s of the port. Left out: %s.", strings.Join(id.HCAs, ", "), one.name(), strings.Join(reasons, "; ")),
		Fix:   "Give the other half of the port an address in a subnet of its own on all nodes (netplan), so that its GID table looks like the first one's.",
	}
}

// usesBoth says that NCCL will use both halves of the node's port.
func (p placed) usesBoth() bool {
	id, err := identity.Resolve(p.Facts, p.Address)
	return err == nil && len(id.HCAs) > 1
}

// inputClosed: ufw drops what no rule allows, and its rules are root's to read.
func inputClosed(one placed, all []placed) *Finding {
	if len(all) < 2 || one.Facts.Firewall.UFW != "enabled" || one.Facts.Firewall.Input == "ACCEPT" || one.Facts.Firewall.Input == "" {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 13, Summary: fmt.Sprintf("%s: ufw is on", one.name()),
		Cause: fmt.Sprintf("ufw on %s drops incoming packets that no rule allows, and its rules cannot be read without root. Ray, NCCL and copies use any port between the nodes.", one.name()),
		Fix:   fmt.Sprintf("If that was not done yet: sudo ufw allow in on %s from %s.", one.device.Name, one.prefix),
	}
}

// sameAddress: each node has an address of its own.
func sameAddress(all []placed) ([]string, *Finding) {
	for i, one := range all {
		for _, other := range all[:i] {
			if one.address == other.address {
				return []string{other.Host, one.Host}, &Finding{
					Severity: Error, Row: 2, Summary: fmt.Sprintf("%s and %s have one identity address", other.name(), one.name()),
					Cause: fmt.Sprintf("Both have %s. vLLM needs an address per node (\"Every node should have a unique IP address\").", one.address),
					Fix:   "Give one of them another address, and say it with fabric_address where it is pinned.",
				}
			}
		}
	}
	return nil, nil
}

// linkLocal: these addresses are picked anew, and then the cluster has to start again.
func linkLocal(all []placed) ([]string, *Finding) {
	var found []placed
	for _, one := range all {
		if one.address.IsLinkLocalUnicast() {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return hosts(found), &Finding{
		Severity: Warning, Row: 11, Summary: fmt.Sprintf("%s: the identity address is link-local", names(found)),
		Cause: fmt.Sprintf("%s has %s on %s. Link-local addresses are picked anew, mostly after a restart; a plan follows the new one and starts the cluster again.", found[0].name(), found[0].address, found[0].device.Name),
		Fix:   "Write static addresses, a /24 for each half of the port (/etc/netplan/40-cx7.yaml, mode 600).",
	}
}

// packetSizes: with large packets on one side only, small ones pass and large copies stall. Both halves
// of a port carry them.
func packetSizes(all []placed) ([]string, *Finding) {
	for half := range 2 {
		sizes := map[int][]placed{}
		device := ""
		for _, one := range all {
			if halves := one.halves(); half < len(halves) {
				sizes[halves[half].MTU] = append(sizes[halves[half].MTU], one)
				device = halves[half].Name
			}
		}
		if len(sizes) < 2 {
			continue
		}
		var said []string
		for _, size := range slices.Sorted(maps.Keys(sizes)) {
			said = append(said, fmt.Sprintf("%d on %s (%s)", size, names(sizes[size]), sizes[size][0].halves()[half].Name))
		}
		return hosts(all), &Finding{
			Severity: Error, Row: 42, Summary: "The nodes' fabric interfaces have different MTUs",
			Cause: "MTU " + strings.Join(said, ", ") + ". Ping works then, and large copies and NCCL stall.",
			Fix:   fmt.Sprintf("Set one MTU on all of them, and on the switch between (netplan, mtu: 9000; now: sudo ip link set %s mtu 9000).", device),
		}
	}
	return nil, nil
}

// halves are the identity interface and the other half of its port, if that carries traffic.
func (p placed) halves() []agent.Interface {
	list := []agent.Interface{p.device}
	for _, device := range p.Facts.Interfaces {
		if _, addressed := firstIPv4(device); addressed && device.Up && device.Name != p.device.Name &&
			device.PhysicalPort != "" && device.PhysicalPort == p.device.PhysicalPort {
			list = append(list, device)
		}
	}
	return list
}
