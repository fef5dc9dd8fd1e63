package acceptance

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// world is a fleet of nodes that a test can break. Nodes are counted from 0: a, b, c.
type world interface {
	nodes() []machine
	// env is how the provider reaches the nodes.
	env() map[string]string
	// names are those of cluster and deployment; empty leaves the defaults.
	names() (cluster, deployment string)
	// image serves models; weightsDir is mounted in the containers and holds the model.
	image() string
	weightsDir() string
	modelPath() string
	// model counts the model's files.
	model() modelSize
	// serveArgs are further arguments of `vllm serve` that this world needs.
	serveArgs() []string
	// fault breaks one thing on a node; heal undoes what no apply can undo.
	fault(t testing.TB, name string, node int)
	heal(t testing.TB)
	// containers are the provider's containers: "aurora-1/ray-spark" to the id.
	containers(t testing.TB) map[string]string
	// leftovers are all things of ours on the nodes but the weights.
	leftovers(t testing.TB) []string
	// exact says that what follows from a fault is there at once. Where it takes real programs some
	// seconds, lines that begin with "?" may be missing.
	exact() bool
}

// machine is a node as tests name it. Moved is the fabric address that the fault "fabric-address"
// gives it.
type machine struct {
	Name, Host, Fabric, Moved string
}

// modelSize is the content of the model's folder; ShardBytes is the size of its second shard, which
// the faults of weights hit.
type modelSize struct {
	Files      int
	Bytes      int64
	ShardBytes int64
}

// The nodes by the names that configurations give them.
const (
	a = iota
	b
	c
)

// letter names a node in configurations: spark_node.a, spark_node.b and so on.
func letter(node int) string { return string(rune('a' + node)) }

// substitute fills in what differs between worlds: $a.name, $a.host, $a.fabric, $a.moved, $image,
// $files and so on.
func substitute(w world, text string) string {
	var pairs []string
	for i, one := range w.nodes() {
		at := "$" + letter(i) + "."
		pairs = append(pairs, at+"name", one.Name, at+"host", one.Host, at+"fabric", one.Fabric, at+"moved", one.Moved)
	}
	cluster, deployment := w.names()
	if cluster == "" {
		cluster = "spark"
	}
	if deployment == "" {
		deployment = w.modelPath()[strings.LastIndex(w.modelPath(), "/")+1:]
	}
	size := w.model()
	pairs = append(pairs,
		"$image", w.image(), "$weights_dir", w.weightsDir(), "$model_path", w.modelPath(),
		"$ray", "ray-"+cluster, "$vllm", "vllm-"+deployment, "$cluster", cluster, "$deployment", deployment,
		"$user", w.env()["SPARK_SSH_USER"], "$port", cmp.Or(w.env()["SPARK_SSH_PORT"], "22"), "$serve_args", strings.Join(w.serveArgs(), " "),
		"$files.rest", fmt.Sprint(size.Files-1), "$bytes.rest", fmt.Sprint(size.Bytes-size.ShardBytes),
		"$files", fmt.Sprint(size.Files), "$bytes", fmt.Sprint(size.Bytes),
	)
	return strings.NewReplacer(pairs...).Replace(text)
}
