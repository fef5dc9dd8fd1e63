// Package ray decides and acts for one Ray cluster: one container per node, each known by its
// identity address, proved by asking the GCS itself.
package ray

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

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
	// Port of the GCS on the head's identity address; 0 means DefaultPort.
	Port int
	// Env is set in every container; identity keys are refused before.
	Env map[string]string
	// Args are further arguments of `ray start` on every node.
	Args []string
	// WeightsDir is mounted at the same path in every container; "~/" is each node's home.
	WeightsDir string
	// Authentication is AuthToken or AuthNone (also if empty). Authenticated says that this cluster's
	// GCS has been seen to refuse calls without the token: one that takes them now was changed.
	Authentication string
	Authenticated  bool
	// Head first, then the workers in order.
	Members []Member
	// Leaving are the addresses of nodes that are members still and that the declaration has no more.
	Leaving []string
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

// Missing is Docker's word that Docker does not have: there is no such container.
const missing = "missing"

// running is the status of a container as it shall be.
const running = "running"

// Node is a member as wanted or as seen: the entry of the resource's `nodes` map.
type Node struct {
	Name    string
	Role    Role
	Address string // by which Ray knows it; empty if it is no member now
	GPUs    int    // that Ray offers there and the host has
	// Cluster is the "A:P" that it shall join; for sentences, not compared (the command has it).
	Cluster string
	// Container is Docker's status, or "missing"; wanted is "running".
	Container string
	// ExitCode and OOMKilled of a container that ended.
	ExitCode  int
	OOMKilled bool
	Image     string
	// Env is what was configured, plus what differs: set by hand, or managed by us and not as it
	// should be. A managed variable that is not there at all reads "(unset)".
	Env map[string]string
	// Command is the whole `ray start` line.
	Command     string
	ContainerID string
	// StartedAt in RFC 3339 with nanoseconds; part of the session.
	StartedAt string
	// SpecDrift lists further differences (mounts, IPC mode, shared memory, devices) in words.
	SpecDrift []string
}

// ContainerName is the name of the cluster's container on each of its nodes.
func ContainerName(cluster string) string { return "ray-" + cluster }

// VolumeName is the name of the volume at /tmp/ray in the Ray container, and in the server's
// container beside it: the two meet over sockets in there.
func VolumeName(cluster string) string { return "ray-" + cluster + "-tmp" }

// CacheName is the name of the volume that keeps what was compiled on a node: the first kernels of a
// model take minutes (17 have been seen), and each new container would compile them again.
func CacheName(cluster string) string { return "ray-" + cluster + "-cache" }

// Address is where the GCS listens, "192.168.200.12:6379"; empty while the head's is unknown.
func Address(spec Spec) string {
	head, found := spec.head()
	if !found || head.Address == "" {
		return ""
	}
	return net.JoinHostPort(head.Address, strconv.Itoa(spec.port()))
}

// Want is the cluster as it shall be, by host, from the declaration alone. The command of a member
// is empty while an address in it is unknown.
func Want(spec Spec) map[string]Node {
	want := make(map[string]Node, len(spec.Members))
	for _, member := range spec.Members {
		env := map[string]string{}
		maps.Copy(env, spec.Env)
		want[member.Host] = Node{
			Name: member.Name, Role: member.Role, Address: member.Address, GPUs: member.GPUs,
			Cluster: Address(spec), Container: running, Image: spec.Image, Env: env,
			Command: commandLine(Command(spec, member)),
		}
	}
	return want
}

// Missing is what a look would find if no member had a container.
func Missing(spec Spec) map[string]Node {
	seen := make(map[string]Node, len(spec.Members))
	for _, member := range spec.Members {
		seen[member.Host] = Node{Name: member.Name, Role: member.Role, Container: missing, Env: map[string]string{}}
	}
	return seen
}

// GPUTotal is the sum of what Ray offers.
func GPUTotal(nodes map[string]Node) int {
	total := 0
	for _, node := range nodes {
		total += node.GPUs
	}
	return total
}

// Session names one life of the cluster: 8 hex digits of a hash over the containers' ids and start
// times. It changes whenever a container was recreated or restarted, by whomever; a server that was
// started for another session must start again. Empty if a container is missing.
func Session(nodes map[string]Node) string {
	if len(nodes) == 0 {
		return ""
	}
	var lives strings.Builder
	for _, host := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[host]
		if node.Container == missing || node.ContainerID == "" {
			return ""
		}
		fmt.Fprintf(&lives, "%s\x00%s\x00%s\n", host, node.ContainerID, node.StartedAt)
	}
	hash := sha256.Sum256([]byte(lives.String()))
	return hex.EncodeToString(hash[:4])
}

// port is the GCS port with its default.
func (s Spec) port() int {
	if s.Port == 0 {
		return DefaultPort
	}
	return s.Port
}

// head is the member with that role.
func (s Spec) head() (Member, bool) {
	at := slices.IndexFunc(s.Members, func(member Member) bool { return member.Role == Head })
	if at < 0 {
		return Member{}, false
	}
	return s.Members[at], true
}

// label is how sentences name a member: by its host name, or by its address without one.
func (m Member) label() string {
	if m.Name == "" {
		return m.Host
	}
	return m.Name
}
