package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// preflightMistakes are nodes that cannot be a cluster; nothing of it is in the configuration.
func preflightMistakes() []mistake {
	onB := func(act func(*hosttest.Host)) func(*hosttest.Fleet) {
		return func(f *hosttest.Fleet) { act(f.Host(b)) }
	}
	return []mistake{
		{name: "another subnet", breakIt: onB(func(h *hosttest.Host) { h.SetFabricAddress("127.0.101.12") }), mend: onB(func(h *hosttest.Host) { h.SetFabricAddress("127.0.100.12") }),
			says: []string{"Error: $a.name and $b.name are in different subnets", at("ray_cluster.pair"), "workers =",
				"$a.name has the identity address $a.fabric (subnet 127.0.100.0/24, on enp1s0f0np0) and $b.name has 127.0.101.12", "Nothing was changed."}},
		{name: "a stray route", breakIt: onB(func(h *hosttest.Host) { h.StrayFabric(true) }), mend: onB(func(h *hosttest.Host) { h.StrayFabric(false) }),
			says: []string{"Error: $b.name: traffic to $a.name does not leave by enp1s0f0np0", at("ray_cluster.pair"),
				"packets to $a.fabric ($a.name) leave by enP7s7 with the source $b.host", "ip route get $a.fabric", "Nothing was changed."}},
		{name: "unequal MTUs", breakIt: onB(func(h *hosttest.Host) { h.SetFabricMTU(1500) }), mend: onB(func(h *hosttest.Host) { h.SetFabricMTU(9000) }),
			says: []string{"Error: The nodes' fabric interfaces have different MTUs", at("ray_cluster.pair"),
				"MTU 1500 on $b.name (enp1s0f0np0), 9000 on $a.name (enp1s0f0np0)", "Nothing was changed."}},
	}
}

// TestPreflight: what the nodes cannot be is said at plan, and a cluster that stands is left in peace.
func TestPreflight(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	for _, one := range preflightMistakes() {
		t.Run(one.name, func(t *testing.T) { one.make(t, w) })
	}
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 20 * time.Second}
	host := w.fleet.Host(b)

	quiet(t, s.ws.Drifted())
	host.SetFabricMTU(1500)
	w.fleet.ResetJournal()
	s.says(t, "apply", s.ws.ApplyPlannedFails(), []string{"Error: The nodes' fabric interfaces have different MTUs", "Nothing was changed."})
	if changes := w.fleet.Journal(); len(changes) > 0 {
		t.Errorf("an apply that was refused changed %v", changes)
	}

	host.SetFabricMTU(9000)
	s.ws.Apply()
	quiet(t, s.ws.Empty())
	host.SetFabricMTU(1500)
	quiet(t, s.ws.Empty()) // It runs; whoever wants to know asks when something changes.

	w.fault(t, "ray-stopped", b)
	plan := clitest.Unwrap(s.ws.Drifted().Text())
	s.says(t, "plan", plan, []string{"Warning: The nodes' fabric interfaces have different MTUs", "may not bring the cluster back before that is mended"})
	host.SetFabricMTU(9000)
	quiet(t, s.ws.Drifted())
	s.ws.ApplyPlanned()
	quiet(t, s.ws.Empty())
	s.destroyed(t)
}

// quiet fails on any warning but Terraform's own about a provider that is not installed.
func quiet(t *testing.T, plan clitest.Plan) {
	t.Helper()
	const own = "Warning: Provider development overrides are in effect"
	if text := plan.Text(); strings.Count(text, "Warning: ") != strings.Count(text, own) {
		t.Errorf("a healthy plan warns:\n%s", text)
	}
}
