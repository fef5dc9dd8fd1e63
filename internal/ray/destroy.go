package ray

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// CheckFree proves that a cluster can be made, or move to another port: no container of its name that is not the
// provider's, and a free GCS port on the head. It reads snapshots only.
func CheckFree(ctx context.Context, spec Spec, machines map[string]fleet.Machine) error {
	return onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		containers, err := machine.Containers(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "list the containers", Cause: err}
		}
		container, exists := find(spec, containers)
		if exists && !ours(spec, container) {
			return Foreign(member.Host, spec.Name)
		}
		if member.Role != Head || exists && mayHold(spec.port(), container) {
			return nil // Ours holds the port.
		}
		facts, err := machine.Facts(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "read the node's facts", Cause: err}
		}
		if slices.Contains(facts.Listening, spec.port()) && !heldByCluster(spec.port(), containers) {
			return portTaken(member, spec.port(), fmt.Sprintf("check that port %d is free", spec.port()))
		}
		return nil
	})
}

// mayHold says whether a head's container can be what listens on the port: it has not ended, and its
// command names no other one.
func mayHold(port int, container engine.Container) bool {
	for i, word := range container.Spec.Command {
		value, inline := strings.CutPrefix(word, "--port=")
		if word == "--port" && i+1 < len(container.Spec.Command) {
			value, inline = container.Spec.Command[i+1], true
		}
		if inline && value != strconv.Itoa(port) {
			return false
		}
	}
	return !slices.Contains([]string{"created", "exited", "dead"}, container.Status)
}

// heldByCluster says whether a head of the provider's listens on the port. It may be the one that a
// replaced cluster had under its earlier name; if it is another's, Apply finds the port taken.
func heldByCluster(port int, containers []engine.Container) bool {
	return slices.ContainsFunc(containers, func(one engine.Container) bool {
		labels := one.Spec.Labels
		return labels[fleet.LabelResource] == resource && labels[fleet.LabelRole] == string(Head) &&
			slices.Contains(one.Spec.Command, fmt.Sprintf("--port=%d", port))
	})
}

// Destroy removes the cluster: its servers, the workers, the head, and Ray's folders. What is gone
// already is no error, so it can be repeated; a container of the cluster's name that is not the
// provider's is refused before anything is removed. With a spec of some workers only it takes these
// out of a cluster that goes on.
func Destroy(ctx context.Context, spec Spec, machines map[string]fleet.Machine, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	found := make([][]engine.Container, len(spec.Members))
	index := func(member Member) int {
		return slices.IndexFunc(spec.Members, func(one Member) bool { return one.Host == member.Host })
	}
	err := onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		machine.Changed() // Only what is there now may be removed.
		containers, err := machine.Containers(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "list the containers", Cause: err}
		}
		if container, exists := find(spec, containers); exists && !ours(spec, container) {
			return Foreign(member.Host, spec.Name)
		}
		found[index(member)] = containers
		return nil
	})
	if err != nil {
		return err
	}
	err = onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		return removeServers(ctx, spec, machine, found[index(member)], progress)
	})
	if err != nil {
		return err
	}
	_, whole := spec.head()
	var failures []error
	for _, role := range []Role{Worker, Head} {
		members := slices.DeleteFunc(slices.Clone(spec.Members), func(member Member) bool { return member.Role != role })
		failures = append(failures, onEach(ctx, members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
			err := removeMember(ctx, spec, machine, found[index(member)], !whole, progress)
			if errors.Is(err, engine.ErrUnlabelled) {
				progress(err.Error() + "; it stays")
				err = nil
			}
			if err == nil {
				err = removeToken(ctx, spec.Name, machine)
			}
			return err
		}))
	}
	return errors.Join(failures...)
}
