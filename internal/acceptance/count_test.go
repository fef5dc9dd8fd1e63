package acceptance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// oneSession: a plan with all three resources dials each node once, opens one session there and no
// channel, looks once, and asks nothing twice.
func oneSession(t *testing.T, s stage) {
	w, _ := s.w.(*memory)
	before, asked := w.fleet.Counters(), w.questions()
	s.ws.Empty()
	want := hosttest.Counters{Connections: 1, Handshakes: 1, Sessions: 1, Facts: 1}
	for i, after := range w.fleet.Counters() {
		got := hosttest.Counters{
			Connections: after.Connections - before[i].Connections, Handshakes: after.Handshakes - before[i].Handshakes,
			Sessions: after.Sessions - before[i].Sessions, Forwards: after.Forwards - before[i].Forwards, Facts: after.Facts - before[i].Facts,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", w.nodes()[i].Name, diff)
		}
	}
	const nodes = "/program/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"
	onEach := []string{"/containers", "/facts", "/list", "/secret/read"}
	onHead := []string{
		"/program/health", nodes, nodes, // with the token, and without
		"/program/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup",
		"/program/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus",
	}
	for i, all := range w.questions() {
		wanted, got := onEach, slices.Sorted(slices.Values(all[len(asked[i]):]))
		if i == a {
			wanted = slices.Sorted(slices.Values(slices.Concat(onEach, onHead)))
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s is asked (-want +got):\n%s", w.nodes()[i].Name, diff)
		}
	}
}

func (w *memory) questions() [][]string {
	var all [][]string
	for _, host := range w.fleet.Hosts() {
		all = append(all, host.Questions())
	}
	return all
}
