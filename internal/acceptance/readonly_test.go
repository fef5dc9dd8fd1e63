package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// With a key whose forced command is the agent in read-only mode a plan works in full, and an apply
// changes nothing and says why.
func TestKeyThatMayOnlyLook(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	full := config{}
	s := stage{w: w, ws: clitest.New(t, full.in(w), w.env()), within: 20 * time.Second}
	look := config{provider: fmt.Sprintf("private_key_file = %q", w.fleet.ReadOnlyKeyFile())}

	s.ws.Config(look.in(w))
	unchanged := watch(t, w)
	if plan := s.ws.Plan(); plan.Exit != 2 {
		t.Fatalf("plan of a new deployment: exit %d\n%s", plan.Exit, plan.Text())
	}
	const why = "this SSH key may only look: its line in authorized_keys starts the agent with --read-only"
	s.says(t, "apply", s.ws.ApplyFails(), []string{"Unable to create spark_node", why, "Nothing was changed", "private_key_file"})
	unchanged()

	s.ws.Config(full.in(w))
	s.ws.Apply()
	s.ws.Config(look.in(w))
	before := w.fleet.Counters()
	s.ws.Empty()
	for i, after := range w.fleet.Counters() {
		if sessions, forwards := after.Sessions-before[i].Sessions, after.Forwards-before[i].Forwards; sessions != 1 || forwards != 0 {
			t.Errorf("%s: %d sessions and %d channels for an idle plan, want one session", w.nodes()[i].Name, sessions, forwards)
		}
	}
	for _, one := range []struct {
		fault  string
		node   int
		doing  string
		repair bool
	}{
		{"ray-head-management", a, "reconcile ray_cluster", true},
		{"vllm-killed", a, "reconcile vllm_deployment", true},
		{"weights-deleted", b, "reconcile vllm_deployment", true},
		{"fabric-address", b, "update spark_node", false},
	} {
		w.fault(t, one.fault, one.node)
		plan := s.ws.Drifted()
		if len(plan.Lines()) == 0 {
			t.Errorf("%s: exit 2 without a drift line", one.fault)
		}
		unchanged := watch(t, w)
		s.says(t, one.fault, s.ws.ApplyPlannedFails(), []string{"Unable to " + one.doing, why})
		unchanged()
		w.heal(t)
		if one.repair {
			s.ws.Config(full.in(w))
			s.ws.Apply()
			s.ws.Config(look.in(w))
		}
	}
	s.ws.Empty()
	unchanged = watch(t, w)
	result := s.ws.Run("destroy", "-auto-approve", "-no-color")
	if result.Exit == 0 {
		t.Error("destroy succeeds")
	}
	s.says(t, "destroy", clitest.Unwrap(result.Text()), []string{"Unable to delete vllm_deployment", why})
	unchanged()
	s.ws.Config(full.in(w))
	s.destroyed(t)
}
