package acceptance

import (
	"fmt"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// mapped is another spelling of a node's address, which is another host to everybody but the network.
func (w *memory) mapped(t testing.TB, node int) string {
	return fmt.Sprintf("resource \"spark_node\" \"again\" {\n  host = \"::ffff:%s\"\n  host_key = %q\n}", w.nodes()[node].Host, w.hostKey(t, node))
}

func again(host string) string {
	return fmt.Sprintf("resource \"spark_node\" \"again\" {\n  host = %q\n}", host)
}

// One machine is one spark_node: two are refused while planning, new ones as well as known ones.
func TestOneMachineTwice(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	nodes := config{nodesOnly: true}
	s := stage{w: w, config: nodes, ws: clitest.New(t, "", w.env())}
	refused := func(why, text string) {
		t.Helper()
		unchanged := s.watch(t)
		s.with(t, func(c *config) { c.before = text })
		s.says(t, "plan", s.ws.PlanFails(), []string{"Error: One machine is declared twice", "$b.host", why, "write a moved block"})
		unchanged()
	}
	refused("both name this host", again(w.nodes()[b].Host))
	refused("both are the machine with the network card 4c:bb:47:00:01:0c", w.mapped(t, b))
	s.with(t, func(*config) {})
	s.ws.Apply()
	s.ws.Empty()
	refused("both name this host", again(w.nodes()[b].Host))
	refused("both are the machine with the network card 4c:bb:47:00:01:0c", w.mapped(t, b))

	// What looks like two for a moment is one: replaced, tainted, renamed with a moved block or without.
	s.with(t, func(*config) {})
	s.actions(t, s.ws.Drifted("-replace=spark_node.b"), "spark_node.b delete create")
	s.ws.ApplyPlanned()
	s.ws.Run("taint", "spark_node.b")
	s.actions(t, s.ws.Drifted(), "spark_node.b delete create")
	s.ws.ApplyPlanned()
	s.ws.Empty()
	one := config{nodesOnly: true, count: 1}
	one.before = again(w.nodes()[b].Host) + "\nmoved {\n  from = spark_node.b\n  to   = spark_node.again\n}"
	s.ws.Config(one.in(w))
	before := w.fleet.Counters()
	unchanged := s.watch(t)
	plan := s.ws.Drifted() // exit code 2, as for every plan with only moves
	s.actions(t, plan, "")
	s.says(t, "plan", clitest.Unwrap(plan.Text()), []string{"spark_node.b has moved to spark_node.again", "Plan: 0 to add, 0 to change, 0 to destroy."})
	s.ws.ApplyPlanned()
	unchanged()
	if dialled := w.fleet.Counters()[b].Connections - before[b].Connections; dialled != 1 {
		t.Errorf("plan and apply of a move dialled %d times, the refresh alone is needed", dialled)
	}
	s.ws.Empty()
	one.before = again(w.nodes()[b].Host)
	s.ws.Config(one.in(w))
	s.ws.Empty()
	s.ws.Config(nodes.in(w))
	s.actions(t, s.ws.Drifted(), "spark_node.again delete, spark_node.b create")
	s.ws.ApplyPlanned()
	s.ws.Empty()
	s.destroyed(t)
}
