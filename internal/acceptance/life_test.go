package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// What an edited configuration does to a cluster of three, from the first apply to destroy.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 3)
	s := stage{w: w, ws: clitest.New(t, "", w.env()), within: 20 * time.Second, config: config{count: 3}}
	s.ws.Config(s.config.in(w))
	s.ws.Apply()
	s.ws.Empty()
	playStories(t, s, []story{
		{"workers in another order", reordered},
		{"worker removed and added", workerLeaves},
		{"another name of the cluster", renamed},
		{"another name of the deployment", renamedDeployment},
		{"port that is taken", takenPort},
		{"another head", otherHead},
		{"another image", otherImage},
		{"container of one worker removed", driftBesideOthers},
	})
	s.destroyed(t)
}

// planned plans an edited configuration without drift.
func (s stage) planned(t *testing.T, edit func(*config)) clitest.Plan {
	t.Helper()
	s.with(t, edit)
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", "", plan.Lines())
	return plan
}

// reordered: the order of workers means nothing to a container.
func reordered(t *testing.T, s stage) {
	plan := s.planned(t, func(c *config) { c.workers = "[spark_node.c, spark_node.b]" })
	s.actions(t, plan, "ray_cluster.pair update")
	for _, leaf := range plan.Leaves() {
		if !strings.HasPrefix(leaf, "ray_cluster.pair workers/") {
			t.Errorf("planned: %s", leaf)
		}
	}
	unchanged := s.watch(t)
	s.ws.ApplyPlanned()
	unchanged()
	s.ws.Empty()
	s.back(t)
}

// workerLeaves: only its own containers go, and come back with it.
func workerLeaves(t *testing.T, s stage) {
	plan := s.planned(t, func(c *config) {
		c.workers, c.deployment = "[spark_node.b]", "tensor_parallel_size = 2"
	})
	s.actions(t, plan, "ray_cluster.pair update, vllm_deployment.tiny update")
	if diff := plan.Diff("ray_cluster.pair", 3.0, 2.0, "gpu_total"); diff != "" {
		t.Error(diff)
	}
	if before, after := plan.Value("ray_cluster.pair", "nodes", s.w.nodes()[c].Host); before == nil || after != nil {
		t.Errorf("nodes of the worker that leaves: %v -> %v", before, after)
	}
	if before, after := plan.Value("vllm_deployment.tiny", "weights", s.w.nodes()[c].Host); before == nil || after != nil {
		t.Errorf("weights of the worker that leaves: %v -> %v", before, after)
	}
	s.repaired(t, scenario{replaced: "$a.name/$vllm $c.name/$ray"})
	for _, left := range s.w.leftovers(t) {
		if strings.HasPrefix(left, s.w.nodes()[c].Name+": container") || strings.HasPrefix(left, s.w.nodes()[c].Name+": volume") {
			t.Errorf("the worker that left has %s", left)
		}
	}
	plan = s.planned(t, func(*config) {})
	s.actions(t, plan, "ray_cluster.pair update, vllm_deployment.tiny update")
	if diff := plan.Diff("vllm_deployment.tiny", nil, "complete", "weights", s.w.nodes()[c].Host, "state"); diff != "" {
		t.Error(diff)
	}
	s.repaired(t, scenario{replaced: "$a.name/$vllm $c.name/$ray"})
}

// renamed: another name is another cluster, and the deployment follows in the same plan.
func renamed(t *testing.T, s stage) {
	plan := s.planned(t, func(c *config) { c.name = "other" })
	s.actions(t, plan, "ray_cluster.pair delete create, vllm_deployment.tiny update")
	s.repaired(t, scenario{replaced: "$a.name/$ray $a.name/$vllm $a.name/ray-other $b.name/$ray $b.name/ray-other $c.name/$ray $c.name/ray-other"})
	s.back(t)
}

// renamedDeployment: another name is another server.
func renamedDeployment(t *testing.T, s stage) {
	plan := s.planned(t, func(c *config) { c.deployment = `name = "other"` })
	s.actions(t, plan, "vllm_deployment.tiny delete create")
	s.repaired(t, scenario{replaced: "$a.name/$vllm $a.name/vllm-other"})
	// Without a name in the configuration the present one stays.
	s.with(t, func(*config) {})
	s.ws.Empty()
	s.with(t, func(c *config) { c.deployment = `name = "$deployment"` })
	s.ws.Apply()
	s.back(t)
}

// takenPort: a plan that moves the server to a port of another program fails before the server stops.
func takenPort(t *testing.T, s stage) {
	w, _ := s.w.(*memory)
	w.fleet.Host(a).TakePort(8100)
	s.with(t, func(c *config) { c.deployment = "port = 8100" })
	s.says(t, "plan", s.ws.PlanFails(), []string{"Error: Unable to plan vllm_deployment tiny", "port 8100 is taken by another program on $a.name"})
	w.fleet.Host(a).FreePort(8100)
	plan := s.planned(t, func(c *config) { c.deployment = "port = 8100" })
	s.actions(t, plan, "vllm_deployment.tiny update")
	s.repaired(t, scenario{replaced: "$a.name/$vllm"})
	s.back(t)
}

// otherHead: another machine as head is another cluster; the server moves there in the same plan.
func otherHead(t *testing.T, s stage) {
	plan := s.planned(t, func(c *config) { c.head, c.workers = "spark_node.b", "[spark_node.a, spark_node.c]" })
	s.actions(t, plan, "ray_cluster.pair delete create, vllm_deployment.tiny update")
	nodes := s.w.nodes()
	if diff := plan.Diff("vllm_deployment.tiny", nodes[a].Host, nodes[b].Host, "server", "host"); diff != "" {
		t.Error(diff)
	}
	if diff := plan.Diff("ray_cluster.pair", nodes[a].Fabric+":6379", nodes[b].Fabric+":6379", "address"); diff != "" {
		t.Error(diff)
	}
	s.repaired(t, scenario{replaced: "$a.name/$ray $a.name/$vllm $b.name/$ray $b.name/$vllm $c.name/$ray"})
	s.back(t)
}

// otherImage: every container is made anew, nothing is replaced as a resource.
func otherImage(t *testing.T, s stage) {
	w, _ := s.w.(*memory)
	w.addImage("registry.example/vllm-ray:2", "")
	plan := s.planned(t, func(c *config) { c.image = "registry.example/vllm-ray:2" })
	s.actions(t, plan, "ray_cluster.pair update, vllm_deployment.tiny update")
	for _, one := range s.w.nodes() {
		if diff := plan.Diff("ray_cluster.pair", w.image(), "registry.example/vllm-ray:2", "nodes", one.Host, "image"); diff != "" {
			t.Error(diff)
		}
	}
	s.repaired(t, scenario{replaced: "$a.name/$ray $a.name/$vllm $b.name/$ray $c.name/$ray"})
	s.back(t)
}

// driftBesideOthers: the container of one worker is mended, the other worker's is left running.
func driftBesideOthers(t *testing.T, s stage) {
	s.w.fault(t, "ray-removed", b)
	s.actions(t, s.ws.Drifted(), "ray_cluster.pair update, vllm_deployment.tiny update")
	s.repaired(t, scenario{replaced: "$a.name/$vllm $b.name/$ray"})
}

// A node that is gone for good does not hold the others: unreachable = "keep" leaves behind what is on it.
func TestDestroyWithoutADeadNode(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	ws := clitest.New(t, config{clusterOnly: true}.in(w), w.env())
	ws.Apply()
	w.fleet.Host(1).PowerOff()
	refused := ws.Run("destroy", "-auto-approve", "-no-color", "-refresh=false")
	if text := clitest.Unwrap(refused.Text()); refused.Exit != 1 || !strings.Contains(text, `unreachable = "keep" in the provider block leaves behind what is on it`) {
		t.Fatalf("exit %d: %s", refused.Exit, text)
	}
	ws.Config(config{clusterOnly: true, provider: `unreachable = "keep"`}.in(w))
	left := ws.Destroy()
	if text := clitest.Unwrap(left.Text()); !strings.Contains(text, "It may still have container ray-") {
		t.Errorf("nothing is said of what is left behind: %s", text)
	}
	if containers := w.fleet.Host(0).Containers(); len(containers) != 0 {
		t.Errorf("left on the living node: %v", containers)
	}
}
