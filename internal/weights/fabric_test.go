package weights

import (
	"net/netip"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

func TestOnFabric(t *testing.T) {
	facts := agent.Facts{
		Interfaces: []agent.Interface{
			{Name: "enP7s7", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.230.180/24")}},
			{Name: "enp1s0f1np1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.200.12/24")}},
			{Name: "bond0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.201.12/24")}},
		},
		RDMA: []agent.RDMADevice{{Name: "rocep1s0f1", Interface: "enp1s0f1np1"}},
	}
	for address, want := range map[string]bool{"192.168.200.12": true, "10.1.230.180": false, "192.168.201.12": false, "192.168.200.13": false, "": false} {
		if got := OnFabric(facts, address); got != want {
			t.Errorf("%q: got %v", address, got)
		}
	}
	if OnFabric(agent.Facts{}, "192.168.200.12") {
		t.Error("a node without facts is on the fabric")
	}
}
