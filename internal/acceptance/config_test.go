package acceptance

import (
	"cmp"
	"fmt"
	"strings"
)

// config is a configuration: two nodes, a cluster, a deployment, and what a test changes of it.
// All texts are HCL.
type config struct {
	// before stands in front of everything.
	before string
	// provider, cluster and deployment are further lines of these blocks, node of the nodes' by number.
	provider, cluster, deployment string
	node                          map[int]string
	// host replaces the host expression of a node.
	host map[int]string
	// name and image are the cluster's; head, workers and model replace those expressions.
	name, image, head, workers, model string
	// count is how many nodes there are, 2 if zero.
	count int
	// clusterOnly leaves the deployment out, nodesOnly the cluster too.
	clusterOnly, nodesOnly bool
}

// in writes the configuration for a world; texts go through substitute.
func (c config) in(w world) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("%s", c.before)
	if c.provider != "" {
		line("provider \"spark\" {\n  %s\n}", c.provider)
	}
	count := cmp.Or(c.count, 2)
	var workers []string
	for i := range count {
		line("resource \"spark_node\" \"%s\" {\n  host = %s\n  %s\n}", letter(i), cmp.Or(c.host[i], fmt.Sprintf("%q", w.nodes()[i].Host)), c.node[i])
		if i > 0 {
			workers = append(workers, "spark_node."+letter(i))
		}
	}
	if c.nodesOnly {
		return substitute(w, out.String())
	}
	cluster, deployment := w.names()
	line("resource \"ray_cluster\" \"pair\" {\n  provider = spark\n  image = %s\n  head = %s\n  workers = %s\n  weights_dir = %q", expression(cmp.Or(c.image, w.image())),
		cmp.Or(c.head, "spark_node.a"), cmp.Or(c.workers, "["+strings.Join(workers, ", ")+"]"), w.weightsDir())
	if name := cmp.Or(c.name, cluster); name != "" {
		line("  name = %s", expression(name))
	}
	line("  %s\n}", c.cluster)
	if c.clusterOnly {
		return substitute(w, out.String())
	}
	line("resource \"vllm_deployment\" \"tiny\" {\n  provider = spark\n  cluster = ray_cluster.pair\n  model = %s", cmp.Or(c.model, fmt.Sprintf("{ path = %q }", w.modelPath())))
	if !strings.Contains(c.deployment, "tensor_parallel_size") {
		line("  tensor_parallel_size = %d", count)
	}
	if !strings.Contains(c.deployment, "args =") {
		line("  args = [%s]", quoted(w.serveArgs()))
	}
	if deployment != "" {
		line("  name = %q", deployment)
	}
	line("  %s\n}", c.deployment)
	return substitute(w, out.String())
}

// expression is a text as HCL, or a reference to another resource as it is.
func expression(text string) string {
	if strings.HasPrefix(text, "terraform_data.") {
		return text
	}
	return fmt.Sprintf("%q", text)
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, fmt.Sprintf("%q", word))
	}
	return strings.Join(all, ", ")
}
