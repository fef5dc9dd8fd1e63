package vllm

import (
	"context"
	"slices"
	"strconv"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// CheckFree says whether the server's container name and port are free on the head, or held by a
// server of this provider: a plan may replace that one. It fails with a [*TakenError].
func CheckFree(ctx context.Context, spec Spec, machines Machines) error {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return err
	}
	look, err := snapshots(ctx, machine)
	if err != nil {
		return err
	}
	// The port may be that of the same deployment under its earlier name. If the server is another
	// deployment's, the start finds the port taken.
	return spec.taken(look, func(one engine.Container) bool { return one.Spec.Labels[fleet.LabelResource] == Resource })
}

// taken says that the name is another's, or that something listens on the port that is none of the
// servers which may go.
func (s Spec) taken(look found, mayGo func(engine.Container) bool) error {
	host := s.Cluster.Head().Host
	if present, exists := look.container(s.ContainerName()); exists && !s.owns(present) {
		return &TakenError{Host: host, Container: s.ContainerName()}
	}
	if !slices.Contains(look.facts.Listening, s.port()) {
		return nil
	}
	if slices.ContainsFunc(look.containers, func(one engine.Container) bool { return mayGo(one) && listens(one, s.port()) }) {
		return nil
	}
	return &TakenError{Host: host, Port: s.port(), Hostname: look.facts.Hostname}
}

// listens says whether a container is a running server on that port.
func listens(container engine.Container, port int) bool {
	held, _ := flagValue(container.Spec.Command, "--port")
	return container.Status == running && held == strconv.Itoa(port)
}

// owns says whether a container was made by the provider for this deployment.
func (s Spec) owns(container engine.Container) bool {
	labels := container.Spec.Labels
	return labels[fleet.LabelResource] == Resource && labels[fleet.LabelName] == s.Name
}
