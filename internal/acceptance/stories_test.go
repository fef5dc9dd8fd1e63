package acceptance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// story is what one drifted plan cannot tell; like a scenario it leaves the stage applied and whole.
type story struct {
	name string
	run  func(t *testing.T, s stage)
}

func playStories(t *testing.T, s stage, stories []story) {
	t.Helper()
	for _, one := range stories {
		if !t.Run(one.name, func(t *testing.T) { one.run(t, s.in(t)) }) {
			t.Fatal("the workspace is not as the next story expects it")
		}
	}
}

// stories are those that any stage can play, with a server or without.
func stories() []story {
	return []story{
		{"address pinned", pinned},
		{"GPU loss accepted", lossAccepted},
		{"node unreachable", unreachable},
		{"node unreachable and kept", kept},
		{"address moves again after the plan", addressMovesAgain},
		{"cluster moves after the plan", clusterMovesAfterPlan},
		{"harmless edits", harmless},
	}
}

// with runs edited configurations, and the stage's own at the end.
func (s stage) with(t *testing.T, edit func(*config)) {
	t.Helper()
	edited := s.config
	edited.node = maps.Clone(edited.node)
	if edited.node == nil {
		edited.node = map[int]string{}
	}
	edit(&edited)
	s.ws.Config(edited.in(s.w))
}

// back makes the stage whole again and says whether something had to be applied.
func (s stage) back(t *testing.T) {
	t.Helper()
	s.w.heal(t)
	s.ws.Config(s.config.in(s.w))
	s.ws.Apply()
	s.ws.Empty()
}

// pinned: a configured address is reported and never followed, until it is written.
func pinned(t *testing.T, s stage) {
	s.with(t, func(c *config) { c.node[b] = `fabric_address = "$b.fabric"` })
	s.ws.Empty()
	s.w.fault(t, "fabric-address", b)
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", `spark_node.b: $b.name: fabric address is $b.moved, expected $b.fabric`, plan.Lines())
	s.compare(t, "planned values", `spark_node.b observed/fabric_address: $b.moved -> $b.fabric`, plan.Leaves())
	text := []string{
		"Host $b.name ($b.host): fabric address is $b.moved, not $b.fabric with spark_node.b, on main.tf line",
		`restore it there, or accept the new one with fabric_address = "$b.moved".`,
	}
	s.says(t, "plan", clitest.Unwrap(plan.Text()), append(text, "Warning: Host", "Applying this plan will stop at this node"))
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), append(text, "Error: Host", "Nothing that depends on this node was changed."))
	unchanged()

	s.with(t, func(c *config) { c.node[b] = `fabric_address = "$b.moved"` })
	followed := nodeScenarios()[0]
	plan = s.ws.Drifted()
	s.compare(t, "drift lines", followed.drift, plan.Lines())
	s.compare(t, "planned values", followed.leaves, plan.Leaves())
	s.repaired(t, scenario{replaced: followed.replaced})
	s.back(t)
}

// lossAccepted: a written gpu_count accepts a loss, and what no longer fits is an error of the plan.
func lossAccepted(t *testing.T, s stage) {
	s.w.fault(t, "gpu-lost", b)
	s.with(t, func(c *config) { c.node[b] = "gpu_count = 0" })
	unchanged := s.watch(t)
	if !s.config.clusterOnly {
		s.says(t, "plan", s.ws.PlanFails(), []string{
			"Error: 2 GPUs needed, the cluster will have 1 with vllm_deployment.tiny, on main.tf line", "tensor_parallel_size = 2",
			"Lower tensor_parallel_size or bring the missing GPU back.",
		})
	}
	unchanged()
	s.with(t, func(c *config) { c.node[b], c.deployment = "gpu_count = 0", "tensor_parallel_size = 1" })
	plan := s.ws.Drifted()
	if diff := plan.Diff("spark_node.b", 1.0, 0.0, "gpu_count"); diff != "" {
		t.Error(diff)
	}
	if diff := plan.Diff("ray_cluster.pair", 1.0, 1.0, "gpu_total"); diff != "" {
		t.Error(diff)
	}
	s.repaired(t, scenario{replaced: "$a.name/$vllm $b.name/$ray"})
	s.w.heal(t)
	s.ws.Empty() // the GPU is back, and left out as declared
	s.back(t)
}

// unreachable: exit 1, nothing lost, nothing changed.
func unreachable(t *testing.T, s stage) {
	s.w.fault(t, "sshd-stopped", b)
	unchanged := s.watch(t)
	s.says(t, "plan", s.ws.PlanFails(), []string{
		"Error: Unable to read spark_node $b.host with spark_node.b, on main.tf line", "$b.host",
		"The last known state is kept and nothing was changed.", "-refresh=false", `unreachable = "keep"`,
	})
	unchanged()
	if result := s.ws.Run("plan", "-refresh=false", "-detailed-exitcode", "-no-color"); result.Exit != 0 {
		t.Errorf("plan -refresh=false: exit %d\n%s", result.Exit, result.Text())
	}
	if result := s.ws.Run("plan", "-target=spark_node.a", "-detailed-exitcode", "-no-color"); result.Exit != 0 {
		t.Errorf("plan -target: exit %d\n%s", result.Exit, result.Text())
	}
	s.w.heal(t)
	s.ws.Empty()
}

// kept: with unreachable = "keep" a silent node is drift with its last known values.
func kept(t *testing.T, s stage) {
	s.w.fault(t, "sshd-stopped", b)
	s.with(t, func(c *config) { c.provider = `unreachable = "keep"` })
	plan := s.ws.Drifted()
	if lines := plan.Lines(); !slices.Contains(lines, substitute(s.w, "spark_node.b: $b.name: does not answer; values below are the last known ones")) {
		t.Errorf("drift lines: %q", lines)
	}
	s.compare(t, "planned values", `spark_node.b observed/reachable: false -> true`, plan.Leaves())
	s.says(t, "plan", clitest.Unwrap(plan.Text()), []string{"Warning: Host $b.host does not answer with spark_node.b", "going on with the last known values"})
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), []string{"Error: Unable to update spark_node $b.host"})
	unchanged()
	s.w.heal(t)
	s.ws.Config(s.config.in(s.w))
	s.ws.Empty()
}

// addressMovesAgain: a saved plan is for one address; a third one is neither planned nor accepted.
func addressMovesAgain(t *testing.T, s stage) {
	s.w.fault(t, "fabric-address", b)
	s.ws.Drifted()
	s.w.heal(t)
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), []string{
		"Error: Host $b.name ($b.host) changed again after this plan was made with spark_node.b",
		"The plan was made for fabric address $b.moved, the host now has $b.fabric. Plan again.",
	})
	unchanged()
	s.ws.Empty()
}

// clusterMovesAfterPlan: a saved plan for one container does not touch another that differs by now.
func clusterMovesAfterPlan(t *testing.T, s stage) {
	s.w.fault(t, "ray-removed", b)
	s.ws.Drifted()
	s.w.fault(t, "ray-env", a)
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), []string{
		"Error: Unable to reconcile ray_cluster $cluster with ray_cluster.pair", "$a.host changed since the plan", "run plan again",
		"No container was changed before this check.",
	})
	unchanged()
	s.ws.Drifted()
	s.back(t)
}

// serverMovesAfterPlan: a saved plan that keeps the server does not replace it.
func serverMovesAfterPlan(t *testing.T, s stage) {
	s.with(t, func(c *config) { c.deployment = "timeouts = { update = \"80m\" }" })
	plan := s.ws.Drifted()
	s.compare(t, "planned values", `vllm_deployment.tiny timeouts/update: null -> 80m`, plan.Leaves())
	s.w.fault(t, "vllm-removed", a)
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), []string{
		"Error: Unable to reconcile vllm_deployment $deployment with vllm_deployment.tiny", "but the plan keeps it", "server container is missing", "Run plan again",
	})
	unchanged()
	s.back(t)
}

// harmless edits restart nothing.
func harmless(t *testing.T, s stage) {
	before := s.w.containers(t)
	s.with(t, func(c *config) {
		c.node[b] = "user = \"$user\"\n  port = $port"
		c.cluster = `timeouts = { create = "9m" }`
	})
	plan := s.ws.Drifted()
	s.compare(t, "planned values", `
		spark_node.b user: null -> $user
		spark_node.b port: null -> $port
		ray_cluster.pair workers/0/user: null -> $user
		ray_cluster.pair workers/0/port: null -> $port
		ray_cluster.pair nodes/$b.host/user: null -> $user
		ray_cluster.pair nodes/$b.host/port: null -> $port
		ray_cluster.pair timeouts/create: null -> 9m
		vllm_deployment.tiny cluster/nodes/$b.host/user: null -> $user
		vllm_deployment.tiny cluster/nodes/$b.host/port: null -> $port
	`, plan.Leaves())
	s.compare(t, "drift lines", "", plan.Lines())
	s.ws.ApplyPlanned()
	s.ws.Empty()
	s.back(t)
	if names := changed(before, s.w.containers(t)); len(names) > 0 {
		t.Errorf("containers were changed: %q", names)
	}
}

// executors: vLLM's older Ray executor asks for the node by its address and waits, the newer one
// serves over the wrong network without a word. The plan finds the fault under both.
func executors(t *testing.T, s stage, values ...string) {
	t.Helper()
	for _, value := range values {
		t.Run("VLLM_USE_RAY_V2_EXECUTOR_BACKEND="+value, func(t *testing.T) {
			env := `env = { VLLM_USE_RAY_V2_EXECUTOR_BACKEND = "` + value + `" }`
			s.with(t, func(c *config) { c.deployment = env })
			s.ws.Apply()
			s.ws.Empty()
			edited := s
			edited.config.deployment = env
			edited.play(t, famousFault())
		})
	}
	s.back(t)
}

func bothExecutors(t *testing.T, s stage) { executors(t, s, "0", "1") }

// shape is a plan's actions as text, for messages.
func shape(plan clitest.Plan) string {
	var parts []string
	for _, address := range slices.Sorted(maps.Keys(plan.Actions())) {
		parts = append(parts, address+" "+plan.Actions()[address])
	}
	return strings.Join(parts, ", ")
}

func (s stage) actions(t *testing.T, plan clitest.Plan, wanted string) {
	t.Helper()
	if diff := cmp.Diff(wanted, shape(plan)); diff != "" {
		t.Errorf("planned actions (-want +got):\n%s", diff)
	}
}
