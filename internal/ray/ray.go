// Package ray decides and acts for one Ray cluster: one container per node, each known by its
// identity address, proved by asking the GCS itself.
package ray

// DefaultPort is the GCS port: 6379, Ray's and vLLM's default.
const DefaultPort = 6379

// Role of a member.
type Role string

// The roles.
const (
	Head   Role = "head"
	Worker Role = "worker"
)

// Spec is a cluster as declared.
type Spec struct {
	Name  string
	Image string
	// Port of the GCS on the head's identity address.
	Port int
	// Env is set in every container; identity keys are refused before.
	Env map[string]string
	// Args are further arguments of `ray start` on every node.
	Args []string
	// WeightsDir is mounted at the same path in every container; "~/" is each node's home.
	WeightsDir string
	// Head first, then the workers in order.
	Members []Member
}

// Member is one node of the declared cluster.
type Member struct {
	Host string // key of every map
	Name string // host name, for sentences
	Role Role
	// Address is the identity address; empty while unknown at plan.
	Address string
	// GPUs that Ray shall offer there.
	GPUs int
}

// Node is a member as wanted or as seen: the entry of the resource's `nodes` map.
type Node struct {
	Name    string
	Role    Role
	Address string // by which Ray knows it
	GPUs    int    // that Ray offers there
	// Container is Docker's status, or "missing"; wanted is "running".
	Container string
	Image     string
	// Env is what was configured, plus what differs: set by hand, or managed by us and not as it should be.
	Env map[string]string
	// Command is the whole `ray start` line.
	Command     string
	ContainerID string
	// StartedAt in RFC 3339 with nanoseconds; part of the session.
	StartedAt string
	// SpecDrift lists further differences (mounts, IPC mode, shared memory, devices) in words.
	SpecDrift []string
}
