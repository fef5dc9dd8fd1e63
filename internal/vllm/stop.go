package vllm

import (
	"context"
	"errors"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// Stop removes the server and unfinished copies of weights; the weights themselves stay. Released
// asks Ray once whether the GPUs are free; after a bounded wait a [*ReleaseError] says that they are
// not, and the server is gone all the same. Nothing is awaited if there was no server. A container
// of that name that is not ours is left alone.
func Stop(ctx context.Context, spec Spec, machines Machines, released func(context.Context) error) error {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return err
	}
	docker, err := machine.Engine(ctx)
	if err != nil {
		return err
	}
	container, err := docker.Container(ctx, spec.ContainerName())
	switch {
	case err == nil && spec.owns(container):
		if err := docker.Remove(ctx, container.ID, stopGrace); err != nil {
			return err
		}
		machine.Changed()
		err = poll(ctx, releaseLimit, released)
		if err != nil {
			err = &ReleaseError{Host: machine.Host(), Err: err}
		}
	case errors.Is(err, engine.ErrNotFound) || err == nil:
		err = nil
	default:
		return err
	}
	return errors.Join(err, clean(ctx, spec, machines))
}

// clean removes unfinished copies. A source that cannot be placed has none.
func clean(ctx context.Context, spec Spec, machines Machines) error {
	hosts, err := Hosts(ctx, spec, machines)
	var problem *weights.Problem
	if errors.As(err, &problem) {
		return nil
	}
	if err != nil {
		return err
	}
	return weights.Clean(ctx, hosts)
}
