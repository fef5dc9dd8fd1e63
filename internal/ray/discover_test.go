package ray

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

func TestDiscover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := lockedSpec()
		spec.Authenticated = false
		spec.Env, spec.Args, spec.WeightsDir = map[string]string{"NCCL_DEBUG": "INFO"}, []string{"--num-cpus=4"}, "~/models"
		w.mustUp(t, spec)
		got, err := Discover(t.Context(), "pair", w.machines["10.1.230.180"])
		if diff := cmp.Diff(spec, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		w.hosts[0].put(engine.ContainerSpec{Name: "ray-hand", Command: []string{"sleep", "inf"}})
		for says, at := range map[string][2]string{
			"there is no container ray-other":                        {"other", "10.1.230.180"},
			"the node is a worker of the cluster and not its head":   {"pair", "10.1.230.181"},
			"look at container ray-hand: the container was not made": {"hand", "10.1.230.180"},
		} {
			if _, err := Discover(t.Context(), at[0], w.machines[at[1]]); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v: got %v, want %q", at, err, says)
			}
		}
		delete(w.hosts[0].containers[0].Spec.Labels, LabelDeclared)
		if _, err := Discover(t.Context(), "pair", w.machines["10.1.230.180"]); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("without its label: %v", err)
		}
	})
}
