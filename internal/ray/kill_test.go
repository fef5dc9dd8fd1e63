package ray

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// errDead is the answer to a provider that was killed.
var errDead = errors.New("the provider is dead")

// life is a provider that is killed at its n-th change on a host: before it is made or, with after,
// right after it, without being told. What it tries later has no effect, as after a SIGKILL.
type life struct {
	mu    sync.Mutex
	acts  int
	n     int
	after bool
	dead  bool
}

func (l *life) act(do func() error) error {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return errDead
	}
	l.acts++
	l.dead = l.acts == l.n
	ends, made := l.dead, !l.dead || l.after
	l.mu.Unlock()
	var err error
	if made {
		err = do()
	}
	if ends {
		return errDead
	}
	return err
}

// mortal is a machine in the hands of such a provider.
type mortal struct {
	fleet.Machine
	life *life
}

func (m *mortal) Engine(ctx context.Context) (engine.Engine, error) {
	client, err := m.Machine.Engine(ctx)
	return &mortalEngine{client, m.life}, err
}

func (m *mortal) Agent(ctx context.Context) (agent.Agent, error) {
	helper, err := m.Machine.Agent(ctx)
	return &mortalAgent{helper, m.life}, err
}

type mortalEngine struct {
	engine.Engine
	life *life
}

func (e *mortalEngine) Create(ctx context.Context, spec engine.ContainerSpec) (id string, err error) {
	err = e.life.act(func() (err error) { id, err = e.Engine.Create(ctx, spec); return err })
	return id, err
}

func (e *mortalEngine) Start(ctx context.Context, id string) error {
	return e.life.act(func() error { return e.Engine.Start(ctx, id) })
}

func (e *mortalEngine) Remove(ctx context.Context, id string, grace time.Duration) error {
	return e.life.act(func() error { return e.Engine.Remove(ctx, id, grace) })
}

func (e *mortalEngine) RemoveVolume(ctx context.Context, name, label string) error {
	return e.life.act(func() error { return e.Engine.RemoveVolume(ctx, name, label) })
}

func (e *mortalEngine) Exec(ctx context.Context, id string, command []string) (result engine.ExecResult, err error) {
	err = e.life.act(func() (err error) { result, err = e.Engine.Exec(ctx, id, command); return err })
	return result, err
}

type mortalAgent struct {
	agent.Agent
	life *life
}

func (a *mortalAgent) WriteSecret(ctx context.Context, name, value string) error {
	return a.life.act(func() error { return a.Agent.WriteSecret(ctx, name, value) })
}

func (a *mortalAgent) RemoveSecret(ctx context.Context, name string) error {
	return a.life.act(func() error { return a.Agent.RemoveSecret(ctx, name) })
}

// TestKilledAnywhere kills the provider at every change that a create, an update of a worker, one of the
// head and a destroy make, before and after it. The next apply finishes, and a destroy leaves nothing.
func TestKilledAnywhere(t *testing.T) {
	acts := map[string]struct {
		up  bool
		run func(*testing.T, Spec, map[string]fleet.Machine, map[string]string) error
	}{
		"create": {false, func(t *testing.T, spec Spec, machines map[string]fleet.Machine, replace map[string]string) error {
			return Apply(t.Context(), spec, machines, replace, nil)
		}},
		"new worker": {true, func(t *testing.T, spec Spec, machines map[string]fleet.Machine, _ map[string]string) error {
			return Apply(t.Context(), spec, machines, map[string]string{"10.1.230.181": "image"}, nil)
		}},
		"new head": {true, func(t *testing.T, spec Spec, machines map[string]fleet.Machine, _ map[string]string) error {
			return Apply(t.Context(), spec, machines, map[string]string{"10.1.230.180": "image"}, nil)
		}},
		"destroy": {true, func(t *testing.T, spec Spec, machines map[string]fleet.Machine, _ map[string]string) error {
			return Destroy(t.Context(), spec, machines, nil)
		}},
	}
	points := 0
	for name, act := range acts {
		for n, whole := 1, false; !whole; n++ {
			for _, after := range []bool{false, true} {
				points++
				t.Run(fmt.Sprintf("%s, change %d, made %v", name, n, after), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						spec := lockedSpec()
						if act.up {
							w.mustUp(t, spec)
						}
						provider := &life{n: n, after: after}
						machines := map[string]fleet.Machine{}
						for host, machine := range w.machines {
							machines[host] = &mortal{machine, provider}
						}
						err := act.run(t, spec, machines, w.decide(t, spec))
						if whole = !provider.dead; whole && err != nil {
							t.Fatalf("it was not killed: %v", err)
						}
						w.mustUp(t, spec)
						if lines := Lines(Want(spec), w.look(t, spec).Nodes); len(lines) > 0 {
							t.Errorf("the next apply left %q", lines)
						}
						if err := Destroy(t.Context(), spec, maps.Clone(w.machines), nil); err != nil {
							t.Error(err)
						}
						for _, host := range w.hosts {
							if len(host.containers)+len(host.volumes)+len(host.secrets) > 0 {
								t.Errorf("%s: destroy left %v, %v, %v", host.host, host.containers, host.volumes, host.secrets)
							}
						}
					})
				})
			}
		}
	}
	if points < 50 {
		t.Errorf("only %d points were tried", points)
	}
	t.Logf("%d points", points)
}
