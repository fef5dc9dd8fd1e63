package hosttest

import (
	"net/netip"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// SetFabricMTU changes the MTU of the fabric interface; it is 9000 at first.
func (h *Host) SetFabricMTU(mtu int) { h.change(func() { h.mtu = mtu }) }

// StrayFabric routes the host's traffic to the fabric by the management interface, as a forgotten
// static route does.
func (h *Host) StrayFabric(astray bool) { h.change(func() { h.astray = astray }) }

// The routing tables, as numbers of the kernel.
const (
	tableLocal, tableMain, tableDefault = 255, 254, 253
)

// routing is what the kernel of a freshly installed Spark says.
func (h *Host) routing() (agent.Routing, error) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	rule := func(priority, table int) agent.Rule {
		return agent.Rule{Priority: priority, Action: agent.RuleLookup, Table: table, LongerThan: -1}
	}
	route := func(name string, source netip.Addr, bits int) agent.Route {
		return agent.Route{Table: tableMain, Type: agent.RouteUnicast, Interface: name, Source: source, Destination: netip.PrefixFrom(source, bits).Masked()}
	}
	routing := agent.Routing{
		Rules: []agent.Rule{rule(0, tableLocal), rule(32766, tableMain), rule(32767, tableDefault)},
		Routes: []agent.Route{
			{Table: tableMain, Type: agent.RouteUnicast, Interface: ManagementInterface, Destination: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Gateway: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Metric: 100},
			route(ManagementInterface, h.management, 24),
		},
	}
	if !h.fabric.IsValid() {
		return routing, nil
	}
	routing.Routes = append(routing.Routes, route(FabricInterface, h.fabric, 24))
	if h.astray {
		stray := route(ManagementInterface, h.management, 24)
		stray.Destination = netip.PrefixFrom(h.fabric, 25).Masked()
		routing.Routes = append(routing.Routes, stray)
	}
	return routing, nil
}
