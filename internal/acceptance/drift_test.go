package acceptance

import (
	"slices"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// Every scenario starts and ends in the same applied workspace.
func TestDrift(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 20 * time.Second}
	s.ws.Apply()
	s.ws.Empty()
	playAll(t, s, slices.Concat(nodeScenarios(), clusterScenarios(), deploymentScenarios(), togetherScenarios(), handScenarios()))
	s.destroyed(t)
}

// What takes more than one plan to tell, in a workspace of its own so that both cores work.
func TestStories(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 20 * time.Second}
	s.ws.Apply()
	s.ws.Empty()
	playStories(t, s, append(stories(), story{"server moves after the plan", serverMovesAfterPlan},
		story{"famous fault under both executors", bothExecutors}, story{"one session per node", oneSession}))
	s.destroyed(t)
}

// destroyed proves that destroy leaves nothing of ours but the weights.
func (s stage) destroyed(t *testing.T) {
	t.Helper()
	s.ws.Destroy()
	if left := s.w.leftovers(t); len(left) > 0 {
		t.Errorf("destroy left %q", left)
	}
}

// playAll stops at the first scenario that fails: the next ones stand on its end.
func playAll(t *testing.T, s stage, scenarios []scenario) {
	t.Helper()
	for _, one := range scenarios {
		if !t.Run(one.name, func(t *testing.T) { s.in(t).play(t, one) }) {
			t.Fatal("the workspace is not as the next scenario expects it")
		}
	}
}

// serverRestart are the planned values of a deployment that follows its cluster.
const serverRestart = `
	vllm_deployment.tiny cluster/session: <id> -> (known after apply)
	vllm_deployment.tiny server/cluster_session: <id> -> (known after apply)
	vllm_deployment.tiny server/container_id: <id> -> (known after apply)
`

// serverEnded are those of one that has ended for want of a rank, which takes vLLM a while.
const serverEnded = `
	? vllm_deployment.tiny server/container: exited -> running
	? vllm_deployment.tiny server/healthy: false -> true
`
