package ray

import (
	"context"
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
	earlier, err := earlierName(ctx, spec, machines)
	if err != nil {
		return err
	}
	return onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		containers, err := machine.Containers(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "list the containers", Cause: err}
		}
		held := slices.ContainsFunc(containers, func(one engine.Container) bool { return isOf(earlier, one) && mayHold(spec.port(), one) })
		containers = slices.DeleteFunc(slices.Clone(containers), func(one engine.Container) bool { return isOf(earlier, one) })
		container, exists := find(spec, containers)
		if exists && !ours(spec, container) {
			return Foreign(member.Host, spec.Name)
		}
		if err := otherCluster(spec, member, containers); err != nil {
			return err
		}
		if member.Role != Head || held || exists && mayHold(spec.port(), container) {
			return nil // Ours holds the port.
		}
		facts, err := machine.Facts(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "read the node's facts", Cause: err}
		}
		if slices.Contains(facts.Listening, spec.port()) {
			return portTaken(spec, member, containers)
		}
		return nil
	})
}

// earlierName is the name of another cluster that has the same head: a cluster that gets another name
// is planned as a new one while the old one still runs, and is removed before the new one is made. If
// it is not removed, Apply finds the nodes taken. Empty if there is none.
func earlierName(ctx context.Context, spec Spec, machines map[string]fleet.Machine) (string, error) {
	head, found := spec.head()
	machine, connected := machines[head.Host]
	if !found || !connected {
		return "", nil
	}
	containers, err := machine.Containers(ctx)
	if err != nil {
		return "", &Error{Host: head.Host, Step: "list the containers", Cause: err}
	}
	for _, one := range containers {
		labels := one.Spec.Labels
		if labels[fleet.LabelResource] == resource && labels[fleet.LabelRole] == string(Head) && labels[fleet.LabelName] != spec.Name {
			return labels[fleet.LabelName], nil
		}
	}
	return "", nil
}

// isOf says whether a container belongs to the cluster with a name.
func isOf(name string, one engine.Container) bool {
	return name != "" && ours(Spec{Name: name}, one)
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
	return !ended(container)
}

// otherCluster refuses a node that belongs to another cluster of the provider's: its GPUs and Ray's
// ports are taken, and both clusters would count them.
func otherCluster(spec Spec, member Member, containers []engine.Container) error {
	at := slices.IndexFunc(containers, func(one engine.Container) bool {
		return one.Spec.Labels[fleet.LabelResource] == resource && one.Spec.Labels[fleet.LabelName] != spec.Name && !ended(one) && !isTrial(one)
	})
	if at < 0 {
		return nil
	}
	labels := containers[at].Spec.Labels
	return &Error{Host: member.Host, Step: "see whether the node is free",
		Cause: fmt.Errorf("%s is the %s of cluster %s already (container %s)", member.label(), labels[fleet.LabelRole], labels[fleet.LabelName], containers[at].Spec.Name),
		Advice: "A node belongs to one cluster. Take it out of that one first, with an apply of its own, or remove its container if no configuration knows it: docker rm -f " +
			containers[at].Spec.Name + ". Nothing was changed."}
}

// ended says whether nothing of a container runs.
func ended(one engine.Container) bool {
	return slices.Contains([]string{"created", "exited", "dead"}, one.Status)
}

// portStep is what was tried when the port turns out to be taken.
func portStep(spec Spec) string { return fmt.Sprintf("check that port %d is free", spec.port()) }

// portTaken names who holds the port, if a container of Ray's does: Ray's GCS would share it without
// an error, and workers would reach one or the other.
func portTaken(spec Spec, head Member, containers []engine.Container) error {
	port := spec.port()
	failed := &Error{Host: head.Host, Step: portStep(spec), Cause: fmt.Errorf("something on %s listens on port %d already", head.label(), port),
		Advice: fmt.Sprintf("Another Ray or a Redis, usually; see it with: ss -ltnp sport = :%d. Stop it, or set another port on the cluster.", port)}
	for _, one := range containers {
		if slices.Contains(one.Spec.Command, "--head") && mayHold(port, one) {
			failed.Cause = fmt.Errorf("a second Ray, in container %s, listens on port %d of %s already", one.Spec.Name, port, head.label())
			failed.Advice = fmt.Sprintf("Stop it (docker rm -f %s), or set another port on the cluster. Nothing was changed.", one.Spec.Name)
		}
	}
	return failed
}
