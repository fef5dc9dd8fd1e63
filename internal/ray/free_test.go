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

// TestBakedIdentity refuses an image of another cluster, on the node that cannot overrule it.
func TestBakedIdentity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, host := range w.hosts {
			host.image.Env["NCCL_IB_HCA"], host.image.Env["VLLM_HOST_IP"] = "=mlx5_0", "10.0.0.1"
		}
		if err := CheckImage(t.Context(), pairSpec(), w.machines); err != nil {
			t.Errorf("each node has its own: %v", err)
		}
		w.hosts[1].facts.RDMA = nil
		err := CheckImage(t.Context(), pairSpec(), w.machines)
		if err == nil || !strings.Contains(err.Error(), "the image sets NCCL_IB_HCA==mlx5_0, which names the devices of the machine that it was made for, and aurora-2 has") {
			t.Errorf("got %v", err)
		}
		if err := w.up(t, pairSpec()); err == nil {
			t.Error("it was started")
		}
		wantJournal(t, w)
	})
}
