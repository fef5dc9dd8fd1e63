//go:build lab

package acceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// Nodes and Ray alone: the same scenarios as in the process, with the small image.
func TestLabCluster(t *testing.T) {
	w := newLab(t, false)
	s := stage{w: w, config: config{clusterOnly: true}, within: 2 * time.Minute}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.cleanUp(t)
	s.ws.Apply()
	s.ws.Empty()
	s.table = &table{}
	playAll(t, s, slices.Concat(nodeScenarios(), clusterScenarios(), handScenarios(), labScenarios()))
	s.destroyed(t)
	s.table.write(t)
}

// What one plan cannot tell, with nodes that are restarted and cut off.
func TestLabStories(t *testing.T) {
	w := newLab(t, false)
	s := stage{w: w, config: config{clusterOnly: true}, within: 2 * time.Minute}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.cleanUp(t)
	s.ws.Apply()
	playStories(t, s, append(stories(), story{"node off", nodeOff}, story{"provider killed", providerKilled}))
	s.destroyed(t)
}

// cleanUp leaves the nodes empty also after a failure.
func (s stage) cleanUp(t *testing.T) {
	t.Cleanup(func() {
		s.w.heal(t)
		if result := s.ws.Run("destroy", "-auto-approve", "-no-color"); result.Exit != 0 {
			t.Errorf("clean up: destroy: exit %d\n%s", result.Exit, result.Text())
		}
	})
}

// nodeOff: a node that is gone is exit 1; when it is back, what it lost is drift, and apply repairs it.
func nodeOff(t *testing.T, s stage) {
	s.w.fault(t, "unreachable", b)
	begin := time.Now()
	s.says(t, "plan", s.ws.PlanFails(), []string{"Error: Unable to read spark_node $b.host with spark_node.b", "The last known state is kept and nothing was changed."})
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the plan took %s to say that a node is off", took)
	}
	s.w.heal(t)
	plan := s.ws.Drifted()
	if lines := strings.Join(plan.Lines(), "\n"); !strings.Contains(lines, substitute(s.w, "ray_cluster.pair: $b.name: container is exited")) {
		t.Errorf("drift lines: %s", lines)
	}
	s.ws.ApplyPlanned()
	s.ws.Empty()
}

// One model over two nodes, with the famous fault under both executors.
func TestLabServe(t *testing.T) {
	w := newLab(t, true)
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 4 * time.Minute}
	s.cleanUp(t)
	s.interrupt(t, "vLLM starts", func() bool { return w.has(t, a, "vllm-"+labName) })
	s.ws.Apply()
	s.ws.Empty()
	var few []scenario
	for _, one := range slices.Concat(nodeScenarios(), clusterScenarios(), deploymentScenarios(), togetherScenarios()) {
		if slices.Contains([]string{"vLLM killed", "weights truncated on the head", "weights deleted on a worker",
			"Ray container run again by hand as it was", "head registered by its management address"}, one.name) {
			few = append(few, one)
		}
	}
	playAll(t, s, few)
	playStories(t, s, []story{{"famous fault under the older executor", olderExecutor}})
	s.destroyed(t)
}

// olderExecutor alone: the newer one is the default here and has been played already.
func olderExecutor(t *testing.T, s stage) { executors(t, s, "0") }
