package node

import (
	"net/netip"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Way is how packets to an address leave a node.
type Way struct {
	// Type is agent.RouteUnicast, or why nothing leaves: RouteLocal (the address is the node's own),
	// RouteBlackhole, RouteUnreachable, RouteProhibit; empty if there is no route.
	Type string
	// Interface and Source are what a program without wishes of its own gets; Gateway is invalid for
	// an address that is reached directly.
	Interface string
	Source    netip.Addr
	Gateway   netip.Addr
}

// Ways says how packets to an address leave the node: several ways where a route has several next
// hops. from is the address that the program binds to; the zero Addr if it binds to none. Nil if the
// kernel did not tell, or decides by something that is not told (a user id, a port).
func Ways(facts agent.Facts, from, to netip.Addr) []Way {
	if len(facts.Routing.Rules) == 0 {
		return nil
	}
	for _, rule := range facts.Routing.Rules {
		matches, known := match(rule, from, to)
		if !known {
			return nil
		}
		if !matches {
			continue
		}
		switch rule.Action {
		case agent.RuleNop:
		case agent.RuleLookup:
			if ways := lookup(facts, rule, from, to); ways != nil {
				return ways
			}
		default:
			return []Way{{Type: rule.Action}}
		}
	}
	return []Way{{}}
}

// match says whether a rule is for packets that a program of the node sends, without mark; known is
// false where that hangs on something that is not told.
func match(rule agent.Rule, from, to netip.Addr) (matches, known bool) {
	matches = (rule.In == "" || rule.In == "lo") && rule.Out == "" && rule.Mark&rule.Mask == 0 &&
		(!rule.From.IsValid() || from.IsValid() && rule.From.Contains(from)) &&
		(!rule.To.IsValid() || rule.To.Contains(to))
	if matches && rule.Other != "" {
		return false, false
	}
	return matches != rule.Not, true
}

// lookup asks a rule's table: the longest prefix wins, then the lowest metric. Nil sends the packet on
// to the next rule.
func lookup(facts agent.Facts, rule agent.Rule, from, to netip.Addr) []Way {
	var best []agent.Route
	for _, route := range facts.Routing.Routes {
		if route.Table != rule.Table || route.Dead || route.TOS != 0 || !route.Destination.Contains(to) {
			continue
		}
		better := 1
		if len(best) > 0 {
			better = route.Destination.Bits() - best[0].Destination.Bits()
			if better == 0 {
				better = best[0].Metric - route.Metric
			}
		}
		switch {
		case better > 0:
			best = []agent.Route{route}
		case better == 0:
			best = append(best, route)
		}
	}
	if len(best) == 0 || best[0].Type == agent.RouteThrow || best[0].Destination.Bits() <= rule.LongerThan {
		return nil
	}
	ways := make([]Way, len(best))
	for i, route := range best {
		ways[i] = Way{Type: route.Type, Interface: route.Interface, Source: source(facts, route, from, to), Gateway: route.Gateway}
	}
	return ways
}

// source is the sender's address on a route: the bound one, the route's own, or that of the interface
// which is nearest to the next hop.
func source(facts agent.Facts, route agent.Route, from, to netip.Addr) netip.Addr {
	if from.IsValid() {
		return from
	}
	if route.Source.IsValid() {
		return route.Source
	}
	next := to
	if route.Gateway.IsValid() {
		next = route.Gateway
	}
	var first netip.Addr
	for _, device := range facts.Interfaces {
		if device.Name != route.Interface {
			continue
		}
		for _, prefix := range device.Addresses {
			if !prefix.Addr().Is4() {
				continue
			}
			if prefix.Contains(next) {
				return prefix.Addr()
			}
			if !first.IsValid() {
				first = prefix.Addr()
			}
		}
	}
	return first
}
