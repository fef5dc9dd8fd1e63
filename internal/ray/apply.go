package ray

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
)

// Limits of the single waits. Ray 2.60 over two nodes of the lab: 3 s to the first answer of the GCS
// and 2 s more to the last member on idle cores; 4 s and 14 s with a load of 25 on two cores.
const (
	gcsTimeout = 60 * time.Second
	// A worker whose address vanished cannot say goodbye: 65 s pass until the GCS takes the old node for dead.
	memberTimeout = 3 * time.Minute
	// portTimeout is for the sockets of a container that was removed a moment ago.
	portTimeout = 10 * time.Second
	pollEvery   = 500 * time.Millisecond
	// serverGrace lets vLLM end its workers. `ray start` (2.60) drains for up to 30 s when it is told
	// to end while something still runs on it; a member that matters leaves by `ray stop` before, for
	// which leaveTimeout is the limit, and the rest has no reason to wait.
	serverGrace  = 20 * time.Second
	leaveTimeout = 20 * time.Second
	rayGrace     = time.Second
	// evidenceTimeout is for reading that log.
	evidenceTimeout = 5 * time.Second
	// logLines of a container that ended are the evidence of an error.
	logLines = 40
)

// applier is one run of Apply.
type applier struct {
	spec     Spec
	machines map[string]fleet.Machine
	replace  map[string]string
	progress func(string)
	facts    map[string]agent.Facts
	specs    map[string]engine.ContainerSpec
	// before are the containers as they were before the first change.
	before map[string][]engine.Container
	// created are the ids of the members' containers now, by host; workers write it at once.
	lock    sync.Mutex
	created map[string]string
	// tries counts how often a worker's container ended.
	tries map[string]int
	// proofs are under way beside the steps; disproved has the first that failed, contents is the
	// result of one, to be read after their end.
	proofs    errgroup.Group
	disproved chan error
	contents  image.Contents
}

// Apply makes the cluster as declared by replacing the containers of the hosts in replace (host to
// reason, from Decide), in an order that leaves nothing half alive: servers, workers, head; then head
// and workers, and the gate. All that can be checked is checked before the first change. It returns
// when the gate is passed; a cancelled or failed run is finished by the next one.
func Apply(ctx context.Context, spec Spec, machines map[string]fleet.Machine, replace map[string]string, progress func(string)) error {
	if len(replace) == 0 {
		return nil
	}
	if progress == nil {
		progress = func(string) {}
	}
	a := &applier{
		spec: spec, machines: machines, replace: maps.Clone(replace), progress: progress,
		facts: map[string]agent.Facts{}, specs: map[string]engine.ContainerSpec{},
		before: map[string][]engine.Container{}, created: map[string]string{}, tries: map[string]int{}, disproved: make(chan error, 1),
	}
	return late(ctx, a.run(ctx))
}

// run prepares and takes all steps.
func (a *applier) run(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	defer a.changed()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		_ = a.proofs.Wait() // What they found was said, or another failure comes before it.
	}()
	steps := []struct {
		title string
		run   func(context.Context) error
	}{
		{"making the weights folder", a.makeFolders},
		{"stopping what serves on the cluster", a.stopServers},
		{"removing containers", a.remove},
		{"waiting for memory", a.awaitMemory},
		{"writing Ray's token", a.writeTokens},
		{"starting the head", a.startHead},
		{"starting workers", a.startWorkers},
		{"waiting for every member", a.await},
	}
	for _, step := range steps {
		a.progress(step.title)
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare reads every member and decides everything; it changes nothing, but for a trial of a new image.
func (a *applier) prepare(ctx context.Context) error {
	head, found := a.spec.head()
	if !found {
		return &Error{Host: a.spec.Name, Step: "read the declaration", Cause: errors.New("the cluster has no head")}
	}
	if reason, replaced := a.replace[head.Host]; replaced {
		for _, member := range a.spec.Members {
			if _, found := a.replace[member.Host]; !found {
				a.replace[member.Host] = "the head is replaced: " + reason
			}
		}
	}
	if err := CheckImage(ctx, a.spec, a.machines); err != nil {
		return err
	}
	for _, member := range a.spec.Members {
		machine := a.machines[member.Host]
		facts, err := machine.Facts(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "read the node's facts", Cause: err}
		}
		a.facts[member.Host] = facts
		if a.before[member.Host], err = machine.Containers(ctx); err != nil {
			return &Error{Host: member.Host, Step: "list the containers", Cause: err}
		}
		if err := a.prepareMember(member, facts); err != nil {
			return err
		}
	}
	return a.tryImage(ctx)
}

// prepareMember decides about one host.
func (a *applier) prepareMember(member Member, facts agent.Facts) error {
	_, replaced := a.replace[member.Host]
	existing, exists := find(a.spec, a.before[member.Host])
	if exists && !ours(a.spec, existing) {
		return Foreign(member.Host, a.spec.Name)
	}
	if !replaced {
		if exists {
			a.created[member.Host] = existing.ID
		}
		return nil
	}
	if err := otherCluster(a.spec, member, a.before[member.Host]); err != nil {
		return err
	}
	held := exists && mayHold(a.spec.port(), existing)
	if member.Role == Head && !held && slices.Contains(facts.Listening, a.spec.port()) {
		return portTaken(a.spec, member, a.before[member.Host])
	}
	if facts.GPUError == "" && len(facts.GPUs) < member.GPUs {
		return &Error{Host: member.Host, Step: "count GPUs", Cause: fmt.Errorf("%s has %d of %d GPUs", member.label(), len(facts.GPUs), member.GPUs),
			Advice: "Check the host (nvidia-smi, dmesg), or declare what it has with gpu_count on its node. Nothing was changed."}
	}
	container, err := ContainerSpec(a.spec, member, facts)
	if err != nil {
		return &Error{Host: member.Host, Step: "resolve the identity address", Cause: err,
			Advice: "The cluster's address of a node must be on one of its interfaces that is up. Nothing was changed."}
	}
	a.specs[member.Host] = container
	return nil
}

// Foreign refuses to touch a container that has the cluster's name and was made by others.
func Foreign(host, cluster string) error {
	name := ContainerName(cluster)
	return &Error{Host: host, Step: "look at container " + name, Cause: ErrForeign,
		Advice: "It has the cluster's name and not the provider's labels. Remove or rename it (docker rm -f " + name + "), or give the cluster another name."}
}

// replaced are the members whose container is replaced, of one role.
func (a *applier) replaced(role Role) []Member {
	return slices.DeleteFunc(slices.Clone(a.spec.Members), func(member Member) bool {
		_, found := a.replace[member.Host]
		return !found || member.Role != role
	})
}

// stopServers removes the servers that use this cluster: a vLLM does not survive any of its ranks.
func (a *applier) stopServers(ctx context.Context) error {
	return onEach(ctx, a.spec.Members, a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		return removeServers(ctx, a.spec, machine, a.before[member.Host], a.progress)
	})
}

// removeServers removes the servers of the cluster on one host.
func removeServers(ctx context.Context, spec Spec, machine fleet.Machine, containers []engine.Container, progress func(string)) error {
	for _, server := range servers(spec, containers) {
		progress(fmt.Sprintf("%s: removing server %s", machine.Host(), server.Spec.Name))
		if err := removeContainer(ctx, machine, server, serverGrace); err != nil {
			return err
		}
	}
	return nil
}

// removeContainer removes one container and drops the host's snapshot.
func removeContainer(ctx context.Context, machine fleet.Machine, container engine.Container, grace time.Duration) error {
	defer machine.Changed()
	client, err := machine.Engine(ctx)
	if err == nil {
		err = client.Remove(ctx, container.ID, grace)
	}
	if err != nil {
		return &Error{Host: machine.Host(), Step: "remove container " + container.Spec.Name, Cause: err}
	}
	return nil
}

// remove takes the containers to be replaced away, workers first, with Ray's folder: a session file
// of an earlier life misleads the next one.
func (a *applier) remove(ctx context.Context) error {
	_, headToo := a.replace[a.headHost()]
	err := onEach(ctx, a.replaced(Worker), a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		return removeMember(ctx, a.spec, machine, a.before[member.Host], !headToo, a.progress)
	})
	if err != nil {
		return err
	}
	return onEach(ctx, a.replaced(Head), a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		return removeMember(ctx, a.spec, machine, a.before[member.Host], false, a.progress)
	})
}

func (a *applier) headHost() string {
	head, _ := a.spec.head()
	return head.Host
}

// removeMember removes the cluster's container and volume on one host. With leave the raylet says
// goodbye first; else the GCS counts it as alive for up to 13 s more.
func removeMember(ctx context.Context, spec Spec, machine fleet.Machine, containers []engine.Container, leave bool, progress func(string)) error {
	if err := removeTrials(ctx, spec, machine, containers); err != nil {
		return err
	}
	if container, exists := find(spec, containers); exists {
		progress(fmt.Sprintf("%s: removing container %s", machine.Host(), container.Spec.Name))
		if leave && container.Status == running {
			if err := leaveCluster(ctx, machine, container); err != nil {
				progress(fmt.Sprintf("%s: the raylet did not leave by itself (%v); Ray notices within 13 s", machine.Host(), err))
			}
		}
		if err := removeContainer(ctx, machine, container, rayGrace); err != nil {
			return err
		}
	}
	client, err := machine.Engine(ctx)
	if err == nil {
		err = client.RemoveVolume(ctx, VolumeName(spec.Name), fleet.LabelResource)
	}
	if errors.Is(err, engine.ErrUnlabelled) {
		return &Error{Host: machine.Host(), Step: "remove volume " + VolumeName(spec.Name), Cause: err,
			Advice: "It has the name of the cluster's volume and not the provider's labels. Remove it (docker volume rm " + VolumeName(spec.Name) + "), or give the cluster another name."}
	}
	if err != nil {
		return &Error{Host: machine.Host(), Step: "remove volume " + VolumeName(spec.Name), Cause: err,
			Advice: "Ray's session files of the earlier cluster are in it. See which container still uses it: docker ps -a --filter volume=" + VolumeName(spec.Name)}
	}
	return nil
}

// leaveCluster ends Ray inside of a container in good order: 2.7 s, after which the GCS has it as dead.
func leaveCluster(ctx context.Context, machine fleet.Machine, container engine.Container) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	client, err := machine.Engine(ctx)
	if err != nil {
		return err
	}
	result, err := client.Exec(ctx, container.ID, []string{"ray", "stop", "--grace-period", "5"})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("ray stop: exit code %d: %s", result.ExitCode, strings.TrimSpace(result.Stderr))
	}
	return err
}

// changed drops the snapshots of every host that was touched.
func (a *applier) changed() {
	for _, member := range a.spec.Members {
		a.machines[member.Host].Changed()
	}
}
