package ray

import (
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// TestNodeOfAnotherCluster refuses a worker that another cluster has, before anything is changed; two
// clusters on nodes of their own do not meet.
func TestNodeOfAnotherCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.hosts[1].put(engine.ContainerSpec{Name: "ray-lab", Command: []string{"sleep", "inf"},
			Labels: map[string]string{fleet.LabelResource: resource, fleet.LabelName: "lab", fleet.LabelRole: "worker"}})
		for name, err := range map[string]error{
			"plan":  CheckFree(t.Context(), pairSpec(), w.machines),
			"apply": w.up(t, pairSpec()),
		} {
			if err == nil || !strings.Contains(err.Error(), "aurora-2 is the worker of cluster lab already (container ray-lab)") {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantJournal(t, w)
		alone := pairSpec()
		alone.Members = alone.Members[:1]
		w.mustUp(t, alone)
		if _, err := (&fakeEngine{host: w.hosts[1]}).Container(t.Context(), other.ID); err != nil {
			t.Error(err)
		}
		other.Status = "exited" // It holds nothing.
		w.mustUp(t, pairSpec())
	})
}

// TestSecondRay names the container that has the port.
func TestSecondRay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.hosts[0].put(engine.ContainerSpec{Name: "ray-head", Command: []string{"ray", "start", "--head", "--port=6379"}})
		for name, err := range map[string]error{
			"plan":  CheckFree(t.Context(), pairSpec(), w.machines),
			"apply": w.up(t, pairSpec()),
		} {
			if err == nil || !strings.Contains(err.Error(), "a second Ray, in container ray-head, listens on port 6379 of aurora-1 already") {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantJournal(t, w)
	})
}
