package acceptance

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// newCluster is an applied cluster of two simulated nodes.
func newCluster(t *testing.T, edit func(*config)) (*memory, stage) {
	t.Helper()
	w := newMemory(t, 2)
	s := stage{w: w, config: config{clusterOnly: true}, within: 20 * time.Second}
	if edit != nil {
		edit(&s.config)
	}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.ws.Apply()
	s.ws.Empty()
	return w, s
}

// An imported cluster is as one that was made, and is not touched.
func TestImportCluster(t *testing.T) {
	t.Parallel()
	w, s := newCluster(t, func(c *config) {
		c.cluster = `
			env = { NCCL_DEBUG = "INFO" }
			args = ["--num-cpus=3"]`
	})
	id := substitute(w, "spark@$a.host")
	unchanged := watch(t, w)
	s.ws.Run("state", "rm", "ray_cluster.pair")
	for wrong, says := range map[string]string{
		"spark": "is name@head-host", "other@$a.host": "there is no container ray-other", "spark@$b.host": "is a worker of the cluster and not its head",
	} {
		if result := s.ws.Run("import", "-no-color", "ray_cluster.pair", substitute(w, wrong)); result.Exit == 0 || !strings.Contains(clitest.Unwrap(result.Text()), says) {
			t.Errorf("import of %s: exit %d, want %q:\n%s", wrong, result.Exit, says, result.Text())
		}
	}
	if result := s.ws.Run("import", "-no-color", "ray_cluster.pair", id); result.Exit != 0 {
		t.Fatalf("import: exit %d\n%s", result.Exit, result.Text())
	}
	s.ws.Empty()
	s.ws.Run("state", "rm", "ray_cluster.pair")
	blocks := s.config
	blocks.before += "import {\n  to = ray_cluster.pair\n  id = \"" + id + "\"\n}\n"
	s.ws.Config(blocks.in(w))
	s.says(t, "plan", clitest.Unwrap(s.ws.Drifted().Text()), []string{"1 to import, 0 to add, 0 to change, 0 to destroy."})
	s.ws.ApplyPlanned()
	s.ws.Empty()
	unchanged()
	s.destroyed(t)
}

// Drift that is lived with is seen and neither counted nor repaired, until it is not lived with any more
// or the declaration changes.
func TestClusterIgnoresDrift(t *testing.T) {
	t.Parallel()
	w, s := newCluster(t, nil)
	s.with(t, func(c *config) { c.cluster = `ignore_drift = ["env"]` })
	s.ws.Apply()
	s.ws.Empty()
	w.fault(t, "ray-env", b)
	unchanged := s.watch(t)
	s.ws.Apply()
	s.ws.Empty()
	unchanged()
	if state := s.ws.Run("state", "pull").Stdout; !strings.Contains(state, `"NCCL_DEBUG": "INFO"`) {
		t.Error("what is ignored is not shown in nodes")
	}
	s.with(t, func(c *config) { c.cluster = "ignore_drift = [\"env\"]\n  env = { LANG = \"C\" }" })
	plan := s.ws.Drifted()
	if leaves := strings.Join(plan.Leaves(), "\n"); !strings.Contains(leaves, substitute(w, "nodes/$b.host/env/NCCL_DEBUG: INFO -> null")) {
		t.Errorf("a change of env leaves what was set by hand:\n%s", leaves)
	}
	s.ws.ApplyPlanned()
	s.ws.Empty()
	w.fault(t, "ray-management", b)
	plan = s.ws.Drifted()
	s.compare(t, "drift lines", `
		ray_cluster.pair: $b.name: Ray node address $b.host, should be $b.fabric
		ray_cluster.pair: $b.name: command changed by hand (without --node-ip-address=$b.fabric, with --node-ip-address=$b.host)
		ray_cluster.pair: $b.name: VLLM_HOST_IP is $b.host, which is not what this node needs now
	`, plan.Lines())
	s.ws.ApplyPlanned()
	s.destroyed(t)
}

// Two clusters on nodes of their own do not know each other; a node in both is refused.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 4)
	const second = `
resource "ray_cluster" "second" {
  provider    = spark
  name        = "second"
  image       = "$image"
  weights_dir = "$weights_dir"
  head        = spark_node.c
  workers     = [spark_node.%s]
}
`
	s := stage{w: w, config: config{clusterOnly: true, count: 4, workers: "[spark_node.b]"}, within: 20 * time.Second}
	s.config.before = strings.ReplaceAll(second, "%s", "d")
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.ws.Apply()
	s.ws.Empty()
	w.fleet.Host(1).RemoveContainer("ray-spark")
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", "ray_cluster.pair: $b.name: container is missing", plan.Lines())
	before := w.containers(t)
	s.ws.ApplyPlanned()
	if got := strings.Join(changed(before, w.containers(t)), " "); got != substitute(w, "$b.name/ray-spark") {
		t.Errorf("replaced: %s", got)
	}
	s.ws.Empty()
	s.config.before = ""
	s.ws.Config(s.config.in(w))
	s.ws.Apply()
	s.config.before = strings.ReplaceAll(second, "%s", "b")
	s.ws.Config(s.config.in(w))
	unchanged := s.watch(t)
	s.says(t, "plan", s.ws.PlanFails(), []string{"$b.name is the worker of cluster spark already (container ray-spark)"})
	unchanged()
	s.config.before = ""
	s.ws.Config(s.config.in(w))
	s.destroyed(t)
}

// A cluster of one, and of four of which one leaves and one joins while the others run on.
func TestOneAndFourNodes(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 4)
	s := stage{w: w, config: config{clusterOnly: true, count: 4, workers: "[]"}, within: 20 * time.Second}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	steps := []struct{ workers, changed string }{
		{"[]", "$a.name/ray-spark"},
		{"[spark_node.b, spark_node.c, spark_node.d]", "$b.name/ray-spark $c.name/ray-spark $d.name/ray-spark"},
		{"[spark_node.d, spark_node.b, spark_node.c]", ""},
		{"[spark_node.b, spark_node.d]", "$c.name/ray-spark"},
		{"[spark_node.c, spark_node.d]", "$b.name/ray-spark $c.name/ray-spark"},
	}
	for _, step := range steps {
		s.config.workers = step.workers
		s.ws.Config(s.config.in(w))
		before := w.containers(t)
		s.ws.Apply()
		s.ws.Empty()
		if got := strings.Join(changed(before, w.containers(t)), " "); got != substitute(w, step.changed) {
			t.Errorf("workers = %s changed %q, want %q", step.workers, got, substitute(w, step.changed))
		}
	}
	s.destroyed(t)
}

// A container of somebody else's in our place is named and left alone.
func TestForeignContainerInTheWay(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	w.fleet.Host(b).RunContainer("ray-spark", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}})
	s := stage{w: w, config: config{clusterOnly: true}}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	unchanged := watch(t, w)
	s.says(t, "plan", s.ws.PlanFails(), []string{"$b.host: look at container ray-spark: the container was not made by this provider"})
	unchanged()
}

// A node that somebody else brings into the cluster is drift, and a new token keeps it out. One that has
// no token does not get in at all.
func TestForeignNodeJoins(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 3)
	s := stage{w: w, config: config{clusterOnly: true}, within: 20 * time.Second}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.ws.Apply()
	join := func(name, token string) {
		w.fleet.Host(c).RunContainer(name, hosttest.Spec{
			Image: hosttest.DefaultImage, Env: map[string]string{"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token},
			Command: []string{"ray", "start", "--block", substitute(w, "--address=$a.fabric:6379"), substitute(w, "--node-ip-address=$c.fabric"), "--num-gpus=1"},
		})
	}
	join("guess", "0000")
	s.ws.Empty()
	token, err := os.ReadFile(w.fleet.Host(a).Path("~/.config/spark-stack/ray/spark/auth_token"))
	if err != nil {
		t.Fatal(err)
	}
	join("stranger", string(token))
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", "ray_cluster.pair: $a.name: a Ray node that is no member is alive in the cluster: $c.name at $c.fabric", plan.Lines())
	s.ws.ApplyPlanned()
	s.ws.Empty()
	if ended, _ := w.fleet.Host(c).Container("stranger"); ended.Status == "running" {
		t.Error("the stranger is still there")
	}
	s.ws.Destroy()
	if left := strings.Join(w.leftovers(t), ", "); left != substitute(w, "$c.name: container guess, $c.name: container stranger") {
		t.Errorf("destroy left %s, and only what is not ours may stay", left)
	}
}
