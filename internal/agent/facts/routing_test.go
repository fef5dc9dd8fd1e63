package facts

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// netlinkDump is what a kernel 6.18 answered in a network namespace that was set up with iproute2
// 6.1.0 as the tests below list it. Both architectures of the agent have its byte order.
func netlinkDump(t testing.TB) (rules, routes []byte) {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return read("rules.netlink"), read("routes.netlink")
}

var netlinkNames = map[int]string{1: "lo", 3: "enP7s7", 5: "enp1s0f0np0", 7: "enP2p1s0f0np0", 9: "wg0"}

func TestParseRouting(t *testing.T) {
	rules, routes := netlinkDump(t)
	routing, err := ParseRouting(rules, routes, netlinkNames)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rule := range routing.Rules {
		got = append(got, fmt.Sprintf("%d: not=%t from=%s to=%s in=%s mark=%#x/%#x %s %d longer=%d other=%s", rule.Priority, rule.Not,
			rule.From, rule.To, rule.In, rule.Mark, rule.Mask, rule.Action, rule.Table, rule.LongerThan, rule.Other))
	}
	const none = "invalid Prefix"
	want := []string{
		"0: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 255 longer=-1 other=",
		"100: not=false from=192.168.201.12/32 to=" + none + " in= mark=0x0/0x0 lookup 254 longer=-1 other=",
		"101: not=false from=" + none + " to=192.168.201.0/24 in=lo mark=0x0/0x0 lookup 254 longer=-1 other=",
		"5210: not=false from=" + none + " to=" + none + " in= mark=0x80000/0xff0000 lookup 254 longer=-1 other=",
		"5300: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 254 longer=-1 other=uidrange",
		"5301: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 254 longer=-1 other=ipproto",
		"5302: not=false from=" + none + " to=192.0.2.0/24 in= mark=0x0/0x0 prohibit 0 longer=-1 other=",
		"32764: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 254 longer=0 other=",
		"32765: not=true from=" + none + " to=" + none + " in= mark=0xca6c/0xffffffff lookup 51820 longer=-1 other=",
		"32766: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 254 longer=-1 other=",
		"32767: not=false from=" + none + " to=" + none + " in= mark=0x0/0x0 lookup 253 longer=-1 other=",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules:\n%s", diff)
	}

	got = nil
	for _, route := range routing.Routes {
		if route.Type == agent.RouteLocal && route.Interface == "lo" {
			continue
		}
		got = append(got, fmt.Sprintf("%s %s dev=%s via=%s src=%s table=%d metric=%d mtu=%d", route.Type, route.Destination,
			route.Interface, route.Gateway, route.Source, route.Table, route.Metric, route.MTU))
	}
	want = []string{
		"blackhole 192.168.220.0/24 dev= via=invalid IP src=invalid IP table=254 metric=0 mtu=0",
		"local 10.1.230.180/32 dev=enP7s7 via=invalid IP src=10.1.230.180 table=255 metric=0 mtu=0",
		"local 10.8.0.2/32 dev=wg0 via=invalid IP src=10.8.0.2 table=255 metric=0 mtu=0",
		"local 192.168.200.12/32 dev=enp1s0f0np0 via=invalid IP src=192.168.200.12 table=255 metric=0 mtu=0",
		"local 192.168.201.12/32 dev=enP2p1s0f0np0 via=invalid IP src=192.168.201.12 table=255 metric=0 mtu=0",
		"unicast 0.0.0.0/0 dev=enP7s7 via=10.1.230.1 src=invalid IP table=254 metric=100 mtu=0",
		"unicast 0.0.0.0/0 dev=enP7s7 via=10.1.230.2 src=invalid IP table=254 metric=600 mtu=0",
		"unicast 0.0.0.0/0 dev=wg0 via=invalid IP src=invalid IP table=51820 metric=0 mtu=0",
		"unicast 10.1.230.0/24 dev=enP7s7 via=invalid IP src=10.1.230.180 table=254 metric=0 mtu=0",
		"unicast 10.8.0.0/24 dev=wg0 via=invalid IP src=10.8.0.2 table=254 metric=0 mtu=0",
		"unicast 192.168.200.0/24 dev=enp1s0f0np0 via=invalid IP src=192.168.200.12 table=254 metric=0 mtu=0",
		"unicast 192.168.200.99/32 dev=enP7s7 via=10.1.230.1 src=10.1.230.180 table=254 metric=0 mtu=1400",
		"unicast 192.168.201.0/24 dev=enP2p1s0f0np0 via=invalid IP src=192.168.201.12 table=254 metric=0 mtu=0",
		"unicast 192.168.210.0/24 dev=enP2p1s0f0np0 via=192.168.201.13 src=invalid IP table=254 metric=50 mtu=0",
		"unicast 192.168.210.0/24 dev=enp1s0f0np0 via=192.168.200.13 src=invalid IP table=254 metric=50 mtu=0",
		"unreachable 192.168.221.0/24 dev= via=invalid IP src=invalid IP table=254 metric=0 mtu=0",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes:\n%s", diff)
	}
}

// TestRoutingOfThisMachine asks the real kernel: every machine has the three rules and a loopback.
func TestRoutingOfThisMachine(t *testing.T) {
	routing, err := Source{}.routing()
	if err != nil {
		t.Fatal(err)
	}
	if len(routing.Rules) < 3 || !slices.ContainsFunc(routing.Routes, func(route agent.Route) bool { return route.Interface == "lo" }) {
		t.Errorf("got %+v", routing)
	}
}

func FuzzParseRouting(f *testing.F) {
	rules, routes := netlinkDump(f)
	f.Add(rules, routes)
	f.Add(rules[:100], routes[:101])
	f.Fuzz(func(t *testing.T, rules, routes []byte) {
		routing, err := ParseRouting(rules, routes, netlinkNames)
		if err != nil && len(routing.Rules)+len(routing.Routes) > 0 {
			t.Errorf("routes beside the failure %v", err)
		}
		for _, route := range routing.Routes {
			if !route.Destination.Addr().Is4() || route.Type == "" {
				t.Errorf("route %+v", route)
			}
		}
	})
}
