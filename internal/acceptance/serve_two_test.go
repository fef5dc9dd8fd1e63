package acceptance

import (
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// A second deployment on a cluster is refused at plan, with the name of the one that has the GPUs.
func TestServeTwo(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	second := substitute(w, `
resource "vllm_deployment" "second" {
  provider = spark
  cluster = ray_cluster.pair
  model = { path = "$model_path" }
  name = "second"
  port = 8001
  tensor_parallel_size = 1
}
`)
	ws := clitest.New(t, config{}.in(w), w.env())
	ws.Apply()
	ws.Config(config{}.in(w) + second)
	if text := ws.PlanFails(); !strings.Contains(text, "Cluster spark serves tiny already") && !strings.Contains(text, "Cluster spark serves second already") {
		t.Errorf("got %s", text)
	}
	ws.Config(config{}.in(w))
	ws.Empty()
	ws.Destroy()
}
