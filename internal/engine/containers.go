package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Containers implements Engine.
func (d *docker) Containers(ctx context.Context, label string, namePrefixes ...string) ([]Container, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	// One list, chosen from here: the engine's own filters cannot say "label or name".
	bounded, cancel := d.short(ctx)
	defer cancel()
	listed, err := d.api.ContainerList(bounded, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, d.fail(bounded, "list containers", err)
	}
	var ids []string
	for _, item := range listed.Items {
		if matches(item, label, namePrefixes) {
			ids = append(ids, item.ID)
		}
	}
	found, err := d.inspectAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Container) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return found, nil
}

func matches(item container.Summary, label string, namePrefixes []string) bool {
	if _, ok := item.Labels[label]; ok && label != "" {
		return true
	}
	for _, name := range item.Names {
		name = strings.TrimPrefix(name, "/")
		if slices.ContainsFunc(namePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return true
		}
	}
	return false
}

// inspectAll looks at several containers at once; one that goes away meanwhile is left out.
func (d *docker) inspectAll(ctx context.Context, ids []string) ([]Container, error) {
	found := make([]*Container, len(ids))
	failures := make([]error, len(ids))
	slots := make(chan struct{}, maxParallel)
	var wait sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			seen, err := d.Container(ctx, id)
			switch {
			case err == nil:
				found[i] = &seen
			case !isGone(err):
				failures[i] = err
			}
		})
	}
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err // they have one cause; the first says it
		}
	}
	var containers []Container
	for _, seen := range found {
		if seen != nil {
			containers = append(containers, *seen)
		}
	}
	return containers, nil
}

// Container implements Engine.
func (d *docker) Container(ctx context.Context, nameOrID string) (Container, error) {
	if err := d.ready(ctx); err != nil {
		return Container{}, err
	}
	ctx, cancel := d.short(ctx)
	defer cancel()
	seen, err := d.api.ContainerInspect(ctx, nameOrID, client.ContainerInspectOptions{})
	if err != nil {
		return Container{}, d.fail(ctx, "look at container "+nameOrID, err)
	}
	return seenContainer(seen.Container), nil
}

// Create implements Engine.
func (d *docker) Create(ctx context.Context, spec ContainerSpec) (string, error) {
	if err := d.ready(ctx); err != nil {
		return "", err
	}
	config, host := request(spec)
	created, err := d.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: spec.Name, Config: config, HostConfig: host})
	if err == nil {
		return created.ID, nil
	}
	err = d.fail(ctx, "create container "+spec.Name, err)
	var failure *Error
	if errdefs.IsConflict(err) && errors.As(err, &failure) {
		failure.Kind = Conflict
	}
	return "", err
}

// Start implements Engine.
func (d *docker) Start(ctx context.Context, id string) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	_, err := d.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return d.fail(ctx, "start container "+id, err)
}

const (
	// removeTimeout bounds the wait for a removal after the container has stopped: large writable
	// layers take seconds, a stuck mount takes for ever.
	removeTimeout = 2 * time.Minute
	// removePoll is the pause between two looks.
	removePoll = 200 * time.Millisecond
)

// Remove implements Engine.
func (d *docker) Remove(ctx context.Context, id string, grace time.Duration) error {
	step := "remove container " + id
	// By id from here on: another container may get the name while we wait.
	seen, err := d.Container(ctx, id)
	if err != nil {
		if isGone(err) {
			return nil
		}
		return err
	}
	seconds := int(math.Ceil(grace.Seconds()))
	_, err = d.api.ContainerStop(ctx, seen.ID, client.ContainerStopOptions{Timeout: &seconds})
	stopErr := d.fail(ctx, "stop container "+id, err)
	if isGone(stopErr) {
		return nil
	}
	if stopErr != nil && ctx.Err() != nil {
		return stopErr
	}
	// A failed stop does not end it: the forced removal kills, and says it better if it cannot.
	_, err = d.api.ContainerRemove(ctx, seen.ID, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
	err = d.fail(ctx, step, err)
	switch {
	case isGone(err):
		return nil
	case errdefs.IsConflict(err), err == nil: // a conflict is a removal that is already in progress
		return d.waitGone(ctx, seen.ID, step, err)
	default:
		return errors.Join(err, stopErr)
	}
}

// waitGone returns when the engine has forgotten the container; reason is what it said before.
func (d *docker) waitGone(ctx context.Context, id, step string, reason error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, removeTimeout,
		fmt.Errorf("the engine still has the container after %s", removeTimeout))
	defer cancel()
	for {
		_, err := d.Container(bounded, id)
		if isGone(err) {
			return nil
		}
		if err != nil && bounded.Err() == nil {
			return err
		}
		select {
		case <-bounded.Done():
			return &Error{Host: d.host, Step: step, Err: errors.Join(context.Cause(bounded), reason)}
		case <-time.After(removePoll):
		}
	}
}
