package vllm

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
)

// The words for a container's status that decisions need; others are Docker's own.
const (
	missing = "missing"
	running = "running"
)

// Server is a deployment's server as wanted or as seen: the resource's `server`.
type Server struct {
	Host string
	// Container is Docker's status, or "missing"; wanted is "running".
	Container string
	Image     string
	// Command is the `vllm serve` line, as a shell takes it.
	Command string
	// Env is what was configured, plus what differs: set by hand, or managed by us and not as it should be.
	Env map[string]string
	// Healthy says that /health answers 200.
	Healthy bool
	// ClusterSession is the session of the cluster that it was started for; wanted is the cluster's
	// own, empty while that is unknown because the cluster is about to change.
	ClusterSession string
	ContainerID    string
	// KeyVersion is the version of the API key that it was started with; 0 without one.
	KeyVersion int64
	// SpecDrift lists further differences (namespaces, mounts, GPUs, managed variables) in words.
	SpecDrift []string
	// ExitCode and OOMKilled belong to a container that is not running.
	ExitCode  int
	OOMKilled bool
}

// Exists says whether there is a container, whatever it does.
func (s Server) Exists() bool { return s.Container != missing && s.Container != "" }

// Want is the server as it shall be, from the declaration alone.
func Want(spec Spec) Server {
	env := maps.Clone(spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	return Server{
		Host: spec.Cluster.Head().Host, Container: running, Image: spec.image(), Command: container.CommandLine(ServeCommand(spec)),
		Env: env, Healthy: true, KeyVersion: spec.KeyVersion, ClusterSession: spec.Cluster.Session,
	}
}

// Lines are the sentences for what differs. currentSession is the session that the cluster's
// containers show now; empty if it is not known, and then it is not judged.
func Lines(want, seen Server, currentSession string) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, want.Host+": "+fmt.Sprintf(format, args...)) }
	if !seen.Exists() {
		add("server container is missing")
		return lines
	}
	if seen.Container != want.Container {
		add("server container is %s%s, should be %s", seen.Container, container.Ending(seen.Container, seen.ExitCode, seen.OOMKilled), want.Container)
	}
	if seen.Image != want.Image {
		add("served by another image, %s", seen.Image)
	}
	if seen.Command != want.Command {
		add("server was started with other arguments")
	}
	if names := container.EnvDiffers(want.Env, seen.Env); len(names) > 0 {
		add("environment changed by hand (%s)", strings.Join(names, ", "))
	}
	if seen.KeyVersion != want.KeyVersion && want.KeyVersion != 0 && seen.KeyVersion != 0 {
		add("server has version %d of the API key, should have %d", seen.KeyVersion, want.KeyVersion)
	}
	for _, one := range seen.SpecDrift {
		add("%s", one)
	}
	if currentSession != "" && seen.ClusterSession != currentSession {
		add("server was started for another session of the cluster")
	}
	if seen.Container == running && want.Healthy && !seen.Healthy {
		add("server does not answer /health")
	}
	return lines
}

// Decide says why the server must be replaced; empty if it must not.
func Decide(want, seen Server) string {
	switch {
	case !seen.Exists():
		return "container is missing"
	case seen.Container != want.Container:
		return "container is " + seen.Container + container.Ending(seen.Container, seen.ExitCode, seen.OOMKilled)
	case seen.Host != want.Host:
		return "head is another node"
	case seen.Image != want.Image:
		return "image differs"
	case seen.Command != want.Command:
		return "arguments differ"
	case len(container.EnvDiffers(want.Env, seen.Env)) > 0:
		return "environment differs"
	case seen.KeyVersion != want.KeyVersion:
		return "version of the API key differs"
	case len(seen.SpecDrift) > 0:
		return seen.SpecDrift[0]
	case want.ClusterSession == "" || seen.ClusterSession != want.ClusterSession:
		return "cluster has another session"
	case want.Healthy && !seen.Healthy:
		return "/health is not answered"
	}
	return ""
}
