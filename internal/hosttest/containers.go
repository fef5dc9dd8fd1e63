package hosttest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
)

// exitKilled is the code of a process that ended by SIGKILL.
const exitKilled = 137

// instance is a container.
type instance struct {
	host    *Host
	id      string
	name    string
	image   *storedImage
	config  *container.Config
	runtime *container.HostConfig

	status    container.ContainerState
	exitCode  int
	oomKilled bool
	created   time.Time
	started   time.Time
	finished  time.Time
	logs      []logLine
	program   program // nil unless it runs
}

// program is what runs in a container. All is called under the fleet's lock.
type program interface {
	// step moves it on to the present; it may make its container exit.
	step(now time.Time)
	// ports are the TCP ports that it listens on.
	ports() []int
	// listens gives the listener behind an address of the host and a port, or nil.
	listens(address string, port int) *backlog
	// halt ends what it started; the container's state is the caller's.
	halt()
}

// logLine is one line of a container's output.
type logLine struct {
	stderr bool
	at     time.Time
	text   string
}

// logf adds a line to the container's standard error, as Ray and vLLM log there.
func (c *instance) logf(format string, values ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, values...), "\n") {
		c.logs = append(c.logs, logLine{stderr: true, at: time.Now(), text: line})
	}
}

// newID is a container's or exec's id.
func newID() string {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // It never fails; crypto/rand ends the program first.
	return hex.EncodeToString(id)
}

// command is the whole command line.
func (c *instance) command() []string {
	return slices.Concat(c.config.Entrypoint, c.config.Cmd)
}

// env is a variable of the container, the image's own included.
func (c *instance) env(name string) string {
	value := ""
	for _, entry := range c.config.Env {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			value = text
		}
	}
	return value
}

func (c *instance) running() bool { return c.status == container.StateRunning }

// find returns the container with a name, an id or the unique start of one. The lock is held.
func (h *Host) find(nameOrID string) *instance {
	wanted := strings.TrimPrefix(nameOrID, "/")
	for _, c := range h.containers {
		if c.name == wanted || c.id == wanted {
			return c
		}
	}
	if len(wanted) < 4 {
		return nil
	}
	for _, c := range h.containers {
		if strings.HasPrefix(c.id, wanted) {
			return c
		}
	}
	return nil
}

// start runs the container; it answers with the engine's error text, if any.
func (c *instance) start() error {
	for _, mode := range []string{string(c.runtime.PidMode), string(c.runtime.IpcMode)} {
		if err := c.joinable(mode); err != nil {
			return err
		}
	}
	if len(c.runtime.DeviceRequests) > 0 && c.host.fault.noNVIDIARuntime {
		return fmt.Errorf("could not select device driver %q with capabilities: [[gpu]]", "")
	}
	now := time.Now()
	c.status, c.exitCode, c.oomKilled, c.started = container.StateRunning, 0, false, now
	c.finished = time.Time{}
	c.program = c.host.load(c)
	if c.program != nil {
		c.program.step(now)
	}
	c.host.fleet.broadcast()
	return nil
}

// joinable says why the namespace of another container cannot be shared.
func (c *instance) joinable(mode string) error {
	id, ok := strings.CutPrefix(mode, "container:")
	if !ok {
		return nil
	}
	other := c.host.find(id)
	if other == nil {
		return fmt.Errorf("No such container: %s", id) //nolint:revive,staticcheck // Docker's own words.
	}
	if !other.running() {
		return fmt.Errorf("cannot join namespace of a non running container: %s", other.id)
	}
	return nil
}

// stop is SIGTERM and, after the grace, SIGKILL: Ray and most programs ignore the first as process 1.
func (c *instance) stop() {
	code := exitKilled
	if _, ok := c.program.(*serveProgram); ok {
		code = 0
	}
	c.exit(code)
}

// exit ends the container's process with a code, and with it the containers that share its process
// namespace. Nothing happens to a container that does not run.
func (c *instance) exit(code int) {
	if !c.running() {
		return
	}
	c.status, c.exitCode, c.finished = container.StateExited, code, time.Now()
	c.halt()
	for _, other := range c.host.containers {
		if string(other.runtime.PidMode) == "container:"+c.id {
			other.exit(exitKilled)
		}
	}
	c.host.fleet.broadcast()
}

// halt ends the program.
func (c *instance) halt() {
	if c.program != nil {
		program := c.program
		c.program = nil
		program.halt()
	}
}

// remove takes the container away. The lock is held.
func (c *instance) remove() {
	c.exit(exitKilled)
	c.host.containers = slices.DeleteFunc(c.host.containers, func(other *instance) bool { return other == c })
	c.host.fleet.broadcast()
}
