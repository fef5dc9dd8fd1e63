// Package vllm decides and acts for one served model: `vllm serve` in a container of its own on the
// head's node of a Ray cluster, which shares the Ray container's network, IPC and PID namespaces and
// its temporary folder. The ranks run in the Ray containers, one per node.
package vllm

import (
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// Resource is the value of fleet.LabelResource on our containers, RoleServer that of fleet.LabelRole.
const (
	Resource   = "vllm_deployment"
	RoleServer = "server"
)

// LabelSession on a server's container is the session of the cluster that it was started for.
const LabelSession = "io.spark-stack.spark.session"

// DefaultPort is vLLM's own default.
const DefaultPort = 8000

// Spec is a served model as declared.
type Spec struct {
	Name    string
	Cluster ClusterRef
	Source  weights.Source
	// Image of the server; it must be the cluster's, whose containers run the ranks.
	Image string
	// ServedName is the model's name in the API.
	ServedName     string
	TensorParallel int
	Port           int
	Options        Options
	// Args are further arguments of `vllm serve`, Env further variables of the server.
	Args []string
	Env  map[string]string
	// KeyVersion is the version of the API key; 0 is a server that everybody may ask.
	KeyVersion int64
	// StartLimit bounds a start, beside the caller's own deadline; 0 is that of a model without bytes.
	StartLimit time.Duration
}

// ClusterRef is what a deployment knows of its Ray cluster.
type ClusterRef struct {
	Name  string
	Image string
	// Address of the GCS, "192.168.200.12:6379".
	Address string
	// GPUTotal that the cluster offers; negative while unknown.
	GPUTotal int
	// Session changes with every restart of a Ray container; empty while unknown.
	Session string
	// WeightsDir is mounted at the same path in every container; "~/" is the login user's home.
	WeightsDir string
	// Members in any order, one of them the head.
	Members []Member
}

// Member is one node of the cluster.
type Member struct {
	Host string // key of every map
	Name string // host name, for sentences
	Role ray.Role
	// Address is the identity address.
	Address string
	// Home of the login user, if it is known already; it decides what "~/" is.
	Home string
}

// Head is the member on which the server runs; the zero Member if there is none.
func (c ClusterRef) Head() Member {
	at := slices.IndexFunc(c.Members, func(one Member) bool { return one.Role == ray.Head })
	if at < 0 {
		return Member{}
	}
	return c.Members[at]
}

// ContainerName of the server.
func (s Spec) ContainerName() string { return "vllm-" + s.Name }

// image is the server's, by default the cluster's.
func (s Spec) image() string {
	if s.Image == "" {
		return s.Cluster.Image
	}
	return s.Image
}

// served is the name in the API: as declared, else the deployment's.
func (s Spec) served() string {
	if s.ServedName == "" {
		return s.Name
	}
	return s.ServedName
}

// port is as declared, else vLLM's default.
func (s Spec) port() int {
	if s.Port == 0 {
		return DefaultPort
	}
	return s.Port
}

// Listen is where the server is asked from its own node: by loopback, unless args bind it elsewhere.
func (s Spec) Listen() string {
	host := "127.0.0.1"
	if bound := s.bound(); bound != "0.0.0.0" && bound != "::" && bound != "localhost" {
		host = bound
	}
	return net.JoinHostPort(host, strconv.Itoa(s.port()))
}
