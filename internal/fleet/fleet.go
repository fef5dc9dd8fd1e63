// Package fleet holds the connected machines: one SSH connection, one agent and one engine client
// per node and process, shared by every resource on that node, and the snapshot of what was seen.
package fleet

import (
	"context"
	"net"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// Labels of our containers. The lab and other tools find them by these.
const (
	LabelResource = "io.spark-stack.spark.resource" // "ray_cluster" or "vllm_deployment"
	LabelName     = "io.spark-stack.spark.name"     // the resource's name attribute
	LabelCluster  = "io.spark-stack.spark.cluster"  // of a server: the name of the Ray cluster it uses
	LabelRole     = "io.spark-stack.spark.role"     // "head", "worker" or "server"
	LabelSpec     = engine.SpecLabel                // hash of the ContainerSpec it was made from
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
	// Agent and Engine give the live clients for acts.
	Agent(ctx context.Context) (agent.Agent, error)
	Engine(ctx context.Context) (engine.Engine, error)
	// DialContext opens a connection as seen from the machine ("tcp" or "unix").
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}
