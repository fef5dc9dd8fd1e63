package vllm

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/container"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// found is what one look at the head's node gives.
type found struct {
	facts      agent.Facts
	containers []engine.Container
	// imageEnv is the environment of the image that the server's container was made from.
	imageEnv map[string]string
	healthy  bool
	// keyGone says that the server's key file is missing.
	keyGone bool
}

// snapshots begins a look with the node's facts and containers.
func snapshots(ctx context.Context, machine fleet.Machine) (look found, err error) {
	if look.facts, err = machine.Facts(ctx); err != nil {
		return look, err
	}
	look.containers, err = machine.Containers(ctx)
	return look, err
}

// container is the one of that name among the node's.
func (f found) container(name string) (engine.Container, bool) {
	at := slices.IndexFunc(f.containers, func(one engine.Container) bool { return one.Spec.Name == name })
	if at < 0 {
		return engine.Container{}, false
	}
	return f.containers[at], true
}

// serverOf turns what was found into the server as it is, in the words of the declaration.
func serverOf(spec Spec, look found) Server {
	seen := Server{Host: spec.Cluster.Head().Host, Container: missing, Env: map[string]string{}}
	container, exists := look.container(spec.ContainerName())
	if !exists {
		return seen
	}
	seen.Container, seen.ExitCode, seen.OOMKilled = container.Status, container.ExitCode, container.OOMKilled
	seen.ContainerID, seen.Image = container.ID, container.Spec.Image
	seen.Healthy = look.healthy && container.Status == running
	seen.ClusterSession = container.Spec.Labels[LabelSession]
	seen.KeyVersion, _ = strconv.ParseInt(container.Spec.Labels[LabelKeyVersion], 10, 64) // 0 without one
	rayContainer, hasRay := look.container(ray.ContainerName(spec.Cluster.Name))
	want, err := ContainerSpec(spec, Node{Facts: look.facts, ImageEnv: look.imageEnv, RayEnv: rayContainer.Spec.Env})
	resolved := err == nil
	if !resolved {
		// The identity address is not on the node now. That is the cluster's drift; what the server
		// should have instead cannot be told.
		want = engine.ContainerSpec{}
	}
	seen.Env = envOf(spec, want.Env, container.Spec.Env, look.imageEnv)
	seen.Command = commandOf(spec, want.Command, container.Spec.Command)
	if container.Spec.Labels[fleet.LabelResource] != Resource {
		seen.SpecDrift = append(seen.SpecDrift, fmt.Sprintf("container %s was not made by this provider", container.Spec.Name))
	}
	if hasRay && rayContainer.ImageID != container.ImageID {
		seen.SpecDrift = append(seen.SpecDrift, "server and Ray run different builds of the image")
	}
	if look.keyGone {
		seen.SpecDrift = append(seen.SpecDrift, "the file with the API key is gone (~/"+path.Join(agent.SecretFolder, spec.KeyName())+")")
	}
	if resolved {
		seen.SpecDrift = append(seen.SpecDrift, specDrift(want, container.Spec, look.names(spec, container.Spec))...)
	}
	return seen
}

// envOf is the part of a container's environment that was configured or is not as it should be:
// without what the image brings and what the provider sets.
func envOf(spec Spec, expected, env, imageEnv map[string]string) map[string]string {
	shown := map[string]string{}
	for name, value := range env {
		_, configured := spec.Env[name]
		want, managed := expected[name]
		baked, fromImage := imageEnv[name]
		switch {
		case configured:
			shown[name] = value
		case managed && want == value, fromImage && baked == value && !managed:
		case len(expected) == 0 && isManaged(name):
		default:
			shown[name] = value
		}
	}
	return shown
}

// isManaged says whether the provider sets a variable of that name on some nodes.
func isManaged(name string) bool {
	_, preset := overridable()[name]
	_, own := ours()[name]
	return preset || own || strings.HasPrefix(name, rayAuth) || slices.Contains(identity.Reserved(), name)
}

// commandOf is the serve line in the words of the declaration: if it is the expected one, as the
// plan shows it (with "~/" while the home is not known there), else as it is.
func commandOf(spec Spec, expected, command []string) string {
	serve := command
	if len(serve) > 0 && (serve[0] == "env" || serve[0] == "python3") {
		if at := slices.Index(serve, "vllm"); at > 0 {
			serve = serve[at:]
		}
	}
	if at := slices.Index(expected, "vllm"); at >= 0 && slices.Equal(serve, expected[at:]) {
		return container.CommandLine(ServeCommand(spec))
	}
	return container.CommandLine(serve)
}

// before is what stands before `vllm serve`: variables that env(1) takes out, and the program that
// reads the API key.
func before(command []string) (unsets, key []string) {
	unsets = command[:max(0, slices.Index(command, "vllm"))]
	if at := slices.Index(unsets, "python3"); at >= 0 {
		return unsets[:at], unsets[at:]
	}
	return unsets, nil
}

// names are the containers' names by id. The id of a Ray container that is gone stands for the
// present one: that is the session's drift, not another.
func (f found) names(spec Spec, seen engine.ContainerSpec) map[string]string {
	names := map[string]string{}
	for _, mode := range []string{seen.IPCMode, seen.PIDMode} {
		if id, other := strings.CutPrefix(mode, "container:"); other {
			names[id] = ray.ContainerName(spec.Cluster.Name)
		}
	}
	for _, one := range f.containers {
		names[one.ID] = one.Spec.Name
	}
	return names
}

// specDrift compares what has no attribute of its own.
func specDrift(want, seen engine.ContainerSpec, names map[string]string) []string {
	var drift []string
	for _, one := range engine.SpecDifferences(want, seen, names) {
		drift = append(drift, "server: "+one)
	}
	if len(seen.Entrypoint) > 0 {
		drift = append(drift, "server has the entrypoint "+strings.Join(seen.Entrypoint, " "))
	}
	unsets, key := before(want.Command)
	seenUnsets, seenKey := before(seen.Command)
	if !slices.Equal(unsets, seenUnsets) {
		drift = append(drift, "server was started with other variables of the image taken out")
	}
	if !slices.Equal(key, seenKey) {
		drift = append(drift, map[bool]string{true: "server was started with an API key", false: "server was started without the API key"}[len(key) == 0])
	}
	for _, name := range slices.Sorted(maps.Keys(want.Env)) {
		if _, set := seen.Env[name]; !set && isManaged(name) {
			drift = append(drift, name+" is not set")
		}
	}
	return drift
}
