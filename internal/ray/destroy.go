package ray

import (
	"context"
	"errors"
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

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
				err = errors.Join(removeCache(ctx, spec.Name, machine, progress), removeToken(ctx, spec.Name, machine))
			}
			return err
		}))
	}
	return errors.Join(failures...)
}

// removeCache removes what was compiled on a host. A volume that is somebody else's stays.
func removeCache(ctx context.Context, cluster string, machine fleet.Machine, progress func(string)) error {
	client, err := machine.Engine(ctx)
	if err == nil {
		err = client.RemoveVolume(ctx, CacheName(cluster), fleet.LabelResource)
	}
	if errors.Is(err, engine.ErrUnlabelled) {
		progress(err.Error() + "; it stays")
		return nil
	}
	if err != nil {
		return &Error{Host: machine.Host(), Step: "remove volume " + CacheName(cluster), Cause: err}
	}
	return nil
}
