package ray

import (
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// TestNewImageIsTried has a new image without Ray: the cluster runs on.
func TestNewImageIsTried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		for _, host := range w.hosts {
			host.image.ID, host.ray = "sha256:"+strings.Repeat("b", 64), ""
		}
		left := engine.ContainerSpec{Name: "ray-pair-old", Command: []string{"python3"},
			Labels: map[string]string{fleet.LabelResource: resource, fleet.LabelName: "pair", fleet.LabelRole: trial}}
		w.hosts[0].put(left)
		session := Session(w.look(t, spec).Nodes)
		w.journal()
		err := w.up(t, spec)
		if err == nil || !strings.Contains(err.Error(), "the image has no Ray") {
			t.Errorf("got %v", err)
		}
		wantJournal(t, w, "aurora-1: remove ray-pair-old", "aurora-1: start ray-pair-trial", "aurora-1: remove ray-pair-trial")
		if Session(w.look(t, spec).Nodes) != session {
			t.Error("the cluster was touched")
		}
		for _, host := range w.hosts {
			host.ray = "2.61.0"
		}
		w.mustUp(t, spec)
	})
}
