package hosttest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

// Spec is how somebody runs a container by hand. The fields that have no place here are in Host.
type Spec struct {
	Image      string
	Entrypoint []string
	Command    []string
	// Env is what was set beyond the image's own environment.
	Env    map[string]string
	Labels map[string]string
	Host   container.HostConfig
}

// Drop removes an argument from the command: the flag itself, its value after "=" or, if the flag
// stands alone, the value behind it. It says whether the flag was there.
func (s *Spec) Drop(flag string) bool {
	for i, argument := range s.Command {
		if strings.HasPrefix(argument, flag+"=") {
			s.Command = slices.Delete(s.Command, i, i+1)
			return true
		}
		if argument == flag {
			end := i + 1
			if end < len(s.Command) && !strings.HasPrefix(s.Command[end], "-") {
				end++
			}
			s.Command = slices.Delete(s.Command, i, end)
			return true
		}
	}
	return false
}

// Container is a container as a test sees it.
type Container struct {
	ID, Name, Status string
	ExitCode         int
	Spec             Spec
	Logs             string
}

// Containers lists the host's containers, running or not, in the order of their creation.
func (h *Host) Containers() []Container {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.fleet.settle()
	var list []Container
	for _, c := range h.containers {
		list = append(list, c.seen())
	}
	return list
}

// Container returns one container and whether it exists.
func (h *Host) Container(name string) (Container, bool) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.fleet.settle()
	if c := h.find(name); c != nil {
		return c.seen(), true
	}
	return Container{}, false
}

func (c *instance) seen() Container {
	var logs strings.Builder
	for _, line := range c.logs {
		logs.WriteString(line.text + "\n")
	}
	return Container{
		ID: c.id, Name: c.name, Status: string(c.status), ExitCode: c.exitCode,
		Spec: c.spec(), Logs: logs.String(),
	}
}

// spec is what would run the container again.
func (c *instance) spec() Spec {
	env := map[string]string{}
	for _, entry := range c.config.Env {
		name, value, _ := strings.Cut(entry, "=")
		if own, ok := c.image.env[name]; !ok || own != value {
			env[name] = value
		}
	}
	return Spec{
		Image: c.config.Image, Entrypoint: slices.Clone(c.config.Entrypoint),
		Command: slices.Clone(c.config.Cmd), Env: env, Labels: maps.Clone(c.config.Labels),
		Host: *c.runtime,
	}
}

// RunContainer creates and starts a container by hand.
func (h *Host) RunContainer(name string, spec Spec) {
	h.fleet.t.Helper()
	h.act("run "+name, func() error { return h.run(name, spec) })
}

// RerunContainer removes a container and runs it again with a changed specification, as somebody
// does who edits a script of theirs.
func (h *Host) RerunContainer(name string, edit func(*Spec)) {
	h.fleet.t.Helper()
	h.act("rerun "+name, func() error {
		c := h.find(name)
		if c == nil {
			return errors.New("there is no such container")
		}
		spec := c.spec()
		edit(&spec)
		c.remove()
		return h.run(c.name, spec)
	})
}

// StartContainer starts a container that exited.
func (h *Host) StartContainer(name string) {
	h.fleet.t.Helper()
	h.each("start", name, func(c *instance) error {
		if c.running() {
			return nil
		}
		return c.start()
	})
}

// StopContainer stops a container as `docker stop` does.
func (h *Host) StopContainer(name string) {
	h.fleet.t.Helper()
	h.each("stop", name, func(c *instance) error { c.stop(); return nil })
}

// KillContainer ends a container by SIGKILL.
func (h *Host) KillContainer(name string) {
	h.fleet.t.Helper()
	h.each("kill", name, func(c *instance) error { c.exit(exitKilled); return nil })
}

// KillContainerOOM is the kernel's OOM killer.
func (h *Host) KillContainerOOM(name string) {
	h.fleet.t.Helper()
	h.each("kill", name, func(c *instance) error {
		c.exit(exitKilled)
		c.oomKilled = true
		return nil
	})
}

// ExitContainer ends a container by itself, with a code and last lines of its log.
func (h *Host) ExitContainer(name string, code int, log string) {
	h.fleet.t.Helper()
	h.each("exit", name, func(c *instance) error {
		c.logf("%s", log)
		c.exit(code)
		return nil
	})
}

// RemoveContainer is `docker rm -f`.
func (h *Host) RemoveContainer(name string) {
	h.fleet.t.Helper()
	h.each("remove", name, func(c *instance) error { c.remove(); return nil })
}

func (h *Host) run(name string, spec Spec) error {
	var env []string
	for _, key := range slices.Sorted(maps.Keys(spec.Env)) {
		env = append(env, key+"="+spec.Env[key])
	}
	host := spec.Host
	c, problem := h.create(name, container.CreateRequest{
		Config: &container.Config{
			Image: spec.Image, Entrypoint: spec.Entrypoint, Cmd: spec.Command, Env: env, Labels: spec.Labels,
		},
		HostConfig: &host,
	})
	if problem != nil {
		return problem
	}
	return c.start()
}

func (h *Host) each(verb, name string, do func(*instance) error) {
	h.fleet.t.Helper()
	h.act(verb+" "+name, func() error {
		c := h.find(name)
		if c == nil {
			return errors.New("there is no such container")
		}
		return do(c)
	})
}

// act runs a change under the lock and fails the test if it does.
func (h *Host) act(what string, do func() error) {
	h.fleet.t.Helper()
	var err error
	h.change(func() { err = do() })
	if err != nil {
		h.fleet.t.Fatalf("hosttest: %s on %s: %v", what, h.name, err)
	}
}
