package vllm

import (
	"context"
	"errors"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// Stop removes the server, its API key and unfinished copies of weights; the weights themselves stay. Released
// asks Ray once whether the GPUs are free; if they are not after a bounded wait, late says so, and
// the rest is done all the same. Nothing is awaited if there was no server. A container of that name
// that is not ours is left alone.
func Stop(ctx context.Context, spec Spec, machines Machines, released func(context.Context) error) (late *ReleaseError, err error) {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return nil, err
	}
	docker, err := machine.Engine(ctx)
	if err != nil {
		return nil, err
	}
	container, err := docker.Container(ctx, spec.ContainerName())
	switch {
	case err == nil && spec.owns(container):
		if err := docker.Remove(ctx, container.ID, stopGrace); err != nil {
			return nil, err
		}
		machine.Changed()
		if err := poll(ctx, releaseLimit, released); err != nil {
			if ctx.Err() != nil {
				return nil, err // The wait was cut short, which says nothing about the GPUs.
			}
			late = &ReleaseError{Host: machine.Host(), Err: err}
		}
	case err != nil && !errors.Is(err, engine.ErrNotFound):
		return nil, err
	}
	if err := removeKey(ctx, spec, machine); err != nil {
		return late, err
	}
	return late, clean(ctx, spec, machines)
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
