package vllm

import (
	"context"
	"errors"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

const (
	// stopGrace is how long a server may take to stop: vLLM ignores SIGTERM while it loads.
	stopGrace = 10 * time.Second
	// gateLimit bounds the wait for GPUs that a removed server still held: 5 to 8 s were measured, and
	// about 25 s when a rank's node had died.
	gateLimit = time.Minute
	// releaseLimit bounds the same wait when nothing shall follow.
	releaseLimit = 30 * time.Second
	// loadBase and loadRate, in bytes a second, bound a start: kernels that are compiled at first took 17
	// minutes, and a slow disk gives some 100 MB/s.
	loadBase = 30 * time.Minute
	loadRate = 50e6
	// askEvery is the pause between whole looks at a starting server, healthEvery between questions
	// whether it listens, which cost a round trip.
	askEvery    = 2 * time.Second
	healthEvery = 250 * time.Millisecond
	// tellEvery is the pause between reports of the same phase.
	tellEvery = 30 * time.Second
)

// Cluster is what a server's life asks of its Ray cluster. Each question is asked once a call.
type Cluster struct {
	// Gate says why a server must not start: a member that is missing or known by another address, a
	// GPU that is taken, a placement group that is left over.
	Gate func(context.Context) error
	// Alive says which rank's node is gone, while a server starts.
	Alive func(context.Context) error
	// Addresses are those by which Ray knows its living nodes; it may be nil.
	Addresses func(context.Context) ([]string, error)
}

// LoadLimit bounds a start by the bytes of weights that must be read.
func LoadLimit(bytes int64) time.Duration {
	return loadBase + time.Duration(float64(bytes)/loadRate*float64(time.Second))
}

// starter is one start.
type starter struct {
	spec    Spec
	key     Key
	cluster Cluster
	report  func(string)
	machine fleet.Machine
	engine  engine.Engine
	// machines are all nodes: the other ranks' logs may say why a start failed.
	machines Machines
	// id and began belong to the new container.
	id    string
	began time.Time
}

// Start replaces the server and returns when it has answered a completion. The weights must be
// there. Errors are [*Error], [*TakenError], or those of the layers below. A server that failed is left as it
// ended, so that its log can be read; one that can never become ready is removed.
func Start(ctx context.Context, spec Spec, key Key, machines Machines, cluster Cluster, report func(string)) error {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return err
	}
	docker, err := machine.Engine(ctx)
	if err != nil {
		return err
	}
	if report == nil {
		report = func(string) {}
	}
	limit := spec.StartLimit
	if limit == 0 {
		limit = LoadLimit(0)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	run := &starter{spec: spec, key: key, cluster: cluster, report: report, machine: machine, engine: docker, machines: machines}
	machine.Changed() // The last look may be older than the copy of the weights.
	defer machine.Changed()
	image, err := machine.Image(ctx, spec.image())
	if errors.Is(err, engine.ErrNotFound) {
		return run.failed("find image "+spec.image(), "the node does not have it; apply the cluster, which brings it", nil)
	}
	if err != nil {
		return err
	}
	look, err := snapshots(ctx, machine)
	if err != nil {
		return err
	}
	rayContainer, hasRay := look.container(ray.ContainerName(spec.Cluster.Name))
	if !hasRay || rayContainer.Status != running {
		return run.failed("join container "+ray.ContainerName(spec.Cluster.Name), "it does not run on this node; apply the cluster", nil)
	}
	container, err := ContainerSpec(spec, Node{Facts: look.facts, ImageEnv: image.Env, RayEnv: rayContainer.Spec.Env})
	if err != nil {
		return run.failed("prepare the server", "the head cannot run it", err)
	}
	if err := run.writeKey(ctx); err != nil {
		return err
	}
	if err := run.clear(ctx, look); err != nil {
		return err
	}
	report("waiting for free GPUs")
	if err := poll(ctx, gateLimit, cluster.Gate); err != nil {
		return run.failed("ask the Ray cluster", spec.gated(look.containers), err)
	}
	report("starting container " + container.Name)
	if err := run.create(ctx, container); err != nil {
		return err
	}
	return run.ready(ctx)
}

// clear makes room: name and port must be free but for our own server, which is removed.
func (s *starter) clear(ctx context.Context, look found) error {
	old, exists := look.container(s.spec.ContainerName())
	if err := s.spec.taken(look, s.spec.owns); err != nil {
		return err
	}
	if !exists {
		return nil
	}
	s.report("removing the old server")
	if err := s.engine.Remove(ctx, old.ID, stopGrace); err != nil {
		return err
	}
	s.machine.Changed()
	return nil
}

// create makes and starts the container.
func (s *starter) create(ctx context.Context, container engine.ContainerSpec) error {
	id, err := s.engine.Create(ctx, container)
	if err == nil {
		s.id = id
		err = s.engine.Start(ctx, id)
	}
	if err != nil {
		failure := s.failed("start container "+container.Name, "the engine refused", err)
		failure.Finding, _ = diagnose.Explain(err.Error(), s.evidence())
		return failure
	}
	s.began = time.Now()
	s.machine.Changed()
	return nil
}

// failed makes an error of this server's.
func (s *starter) failed(step, seen string, err error) *Error {
	return &Error{Host: s.machine.Host(), Step: step, Seen: seen, Err: err}
}

// evidence is what the diagnosis may use.
func (s *starter) evidence() diagnose.Evidence {
	evidence := diagnose.Evidence{Nodes: map[string]diagnose.Node{}, Host: s.machine.Host(), Image: s.spec.image(), Port: s.spec.port()}
	for _, member := range s.spec.Cluster.Members {
		evidence.Nodes[member.Host] = diagnose.Node{Identity: member.Address}
	}
	if !s.began.IsZero() {
		evidence.WaitedSeconds = int64(time.Since(s.began).Seconds())
	}
	return evidence
}

// poll asks once a second until the answer is nil, and returns the last answer at the limit. A nil
// question is answered.
func poll(ctx context.Context, limit time.Duration, question func(context.Context) error) error {
	if question == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var last error
	for {
		err := question(limited)
		switch {
		case err == nil:
			return nil
		case limited.Err() == nil || last == nil:
			last = err // What the limit cut short says less than the answer before.
		}
		select {
		case <-limited.Done():
			return errors.Join(last, ctx.Err())
		case <-ticker.C:
		}
	}
}
