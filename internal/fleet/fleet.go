// Package fleet holds the connected machines: one SSH connection, one agent and one engine client
// per node and process, shared by every resource on that node, and the snapshot of what was seen.
package fleet

import (
	"context"
	"net"
	"net/http"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// Labels of our containers. The lab and other tools find them by these.
const (
	LabelResource = agent.ContainerLabel           // "ray_cluster" or "vllm_deployment"
	LabelName     = "io.spark-stack.spark.name"    // the resource's name attribute
	LabelCluster  = "io.spark-stack.spark.cluster" // of a server: the name of the Ray cluster it uses
	LabelRole     = "io.spark-stack.spark.role"    // "head", "worker" or "server"
)

// Machine is one node, connected when it is first asked.
type Machine interface {
	// Host is the address as the user wrote it; it names the machine in every map and message.
	Host() string
	// Facts is the snapshot: taken once, shared until Changed.
	Facts(ctx context.Context) (agent.Facts, error)
	// Containers is the snapshot of our containers (those with LabelResource) and of any whose
	// name starts with "ray-" or "vllm-", taken once, shared until Changed.
	Containers(ctx context.Context) ([]engine.Container, error)
	// Image is a cached look at an image; engine.ErrNotFound if the node does not have it.
	Image(ctx context.Context, reference string) (engine.Image, error)
	// Changed drops the snapshot, after a write on the machine.
	Changed()
	// Agent and Engine give the live clients for acts; there is no Engine where nothing may be changed.
	Agent(ctx context.Context) (agent.Agent, error)
	Engine(ctx context.Context) (engine.Engine, error)
	// HTTP asks programs on the machine, such as the GCS or vLLM's server: the URL has the address as
	// seen from there. What a plan reads goes through the agent, all else over a channel of SSH.
	HTTP() http.RoundTripper
	// DialContext opens a connection as seen from the machine ("tcp" or "unix"), past the agent.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Writable fails with a [*ReadOnlyError] if the SSH key may only look at the machine.
	Writable(ctx context.Context) error
	// Warnings are what the user should know of the connection as it is, such as an unchecked host key.
	Warnings() []string
}
