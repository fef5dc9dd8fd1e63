package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// failureMemory is how long a failed connection is remembered: three resources on one dead host
// shall not wait for three time-outs in one refresh.
const failureMemory = 15 * time.Second

// programIdle gives unused channels to programs back.
const programIdle = time.Minute

// machine implements Machine.
type machine struct {
	connection Connection
	config     sshx.Config

	mutex    sync.Mutex
	client   sshx.Client
	failed   error
	failedAt time.Time
	dialling sync.Mutex

	agent      once[agent.Agent]
	engine     once[engine.Engine]
	reads      once[engine.Engine] // of one look
	facts      once[agent.Facts]
	containers once[[]engine.Container]
	changes    atomic.Int64
	programs   *programs
	imagesLock sync.Mutex
	images     map[string]engine.Image
}

var _ Machine = (*machine)(nil)

// key names the settings that make a machine, which are all of them.
func (c Connection) key() string { return fmt.Sprintf("%#v", c) }

func newMachine(connection Connection, config sshx.Config) *machine {
	m := &machine{connection: connection, config: config, images: map[string]engine.Image{}}
	m.programs = newPrograms(m)
	return m
}

// Host implements Machine.
func (m *machine) Host() string { return m.connection.Host }

// connected gives the live connection, dialling once for all callers.
func (m *machine) connected(ctx context.Context) (sshx.Client, error) {
	m.dialling.Lock()
	defer m.dialling.Unlock()
	m.mutex.Lock()
	client, failed, failedAt := m.client, m.failed, m.failedAt
	m.mutex.Unlock()
	if client != nil {
		select {
		case <-client.Done():
			m.reset()
		default:
			return client, nil
		}
	}
	if failed != nil && time.Since(failedAt) < failureMemory {
		return nil, failed
	}
	client, err := m.open(ctx)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			m.failed, m.failedAt = err, time.Now()
		}
		return nil, err
	}
	m.client, m.failed = client, nil
	return client, nil
}

// open makes the connection; to the machine that we run on there is nothing to dial.
func (m *machine) open(ctx context.Context) (sshx.Client, error) {
	if m.connection.Transport == TransportLocal {
		return sshx.Local(m.connection.Host), nil
	}
	return sshx.Dial(ctx, m.config)
}

// Warnings implements Machine.
func (m *machine) Warnings() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.client == nil {
		return nil
	}
	return m.client.Warnings()
}

// reset forgets everything that hung on a lost connection.
func (m *machine) reset() {
	m.mutex.Lock()
	m.client = nil
	m.mutex.Unlock()
	m.agent.forget()
	m.engine.forget()
	m.Changed()
}

// Agent implements Machine.
func (m *machine) Agent(ctx context.Context) (agent.Agent, error) {
	ssh, err := m.connected(ctx)
	if err != nil {
		return nil, err
	}
	// It can end while the connection lives: killed, or given up after a time without network.
	if ended, ok := m.agent.discard(hasEnded); ok {
		_ = ended.Close() // there is nothing left to lose
	}
	return m.agent.get(ctx, func(ctx context.Context) (agent.Agent, error) {
		request, before := m.containersRequest(), m.changes.Load()
		helper, err := client.Start(ctx, m.connection.Host, starter(ssh), client.Options{
			Folder: m.connection.AgentDir, Facts: true, Containers: &request,
		})
		if err == nil && m.changes.Load() != before {
			helper.Forget()
		}
		return helper, err
	})
}

func hasEnded(helper agent.Agent) bool {
	select {
	case <-helper.Done():
		return true
	default:
		return false
	}
}

// Engine implements Machine.
func (m *machine) Engine(ctx context.Context) (engine.Engine, error) {
	if err := m.Writable(ctx); err != nil {
		return nil, err
	}
	if helper, known := m.agent.peek(); known {
		helper.Forget() // Who asks for this is about to change something.
	}
	return m.engine.get(ctx, func(context.Context) (engine.Engine, error) {
		return engine.New(m.connection.Host, m.DialContext, m.connection.Socket, engine.WithDiagnose(m.diagnoseSocket))
	})
}

// HTTP implements Machine.
func (m *machine) HTTP() http.RoundTripper { return m.programs }

// DialContext implements Machine.
func (m *machine) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := m.Writable(ctx); err != nil {
		return nil, err
	}
	ssh, err := m.connected(ctx)
	if err != nil {
		return nil, err
	}
	return ssh.DialContext(ctx, network, address)
}

// Facts implements Machine.
func (m *machine) Facts(ctx context.Context) (agent.Facts, error) {
	return m.facts.get(ctx, func(ctx context.Context) (agent.Facts, error) {
		helper, err := m.Agent(ctx)
		if err != nil {
			return agent.Facts{}, err
		}
		return helper.Facts(ctx)
	})
}

// Containers implements Machine.
func (m *machine) Containers(ctx context.Context) ([]engine.Container, error) {
	return m.containers.get(ctx, func(ctx context.Context) ([]engine.Container, error) {
		docker, err := m.reads.get(ctx, m.reader)
		if err != nil {
			return nil, err
		}
		return docker.Containers(ctx, LabelResource, agent.RayNamePrefix, agent.ServeNamePrefix)
	})
}

// Image implements Machine. Only what was found is kept: a missing image may appear.
func (m *machine) Image(ctx context.Context, reference string) (engine.Image, error) {
	m.imagesLock.Lock()
	known, ok := m.images[reference]
	m.imagesLock.Unlock()
	if ok {
		return known, nil
	}
	docker, err := m.reads.get(ctx, m.reader)
	if err != nil {
		return engine.Image{}, err
	}
	image, err := docker.Image(ctx, reference)
	if err != nil {
		return engine.Image{}, err
	}
	m.imagesLock.Lock()
	defer m.imagesLock.Unlock()
	m.images[reference], m.images[image.ID] = image, image // containers name it by id
	return image, nil
}

// Changed implements Machine.
func (m *machine) Changed() {
	m.changes.Add(1)
	if helper, known := m.agent.peek(); known {
		helper.Forget()
	}
	m.facts.forget()
	m.reads.forget()
	m.containers.forget()
	m.imagesLock.Lock()
	defer m.imagesLock.Unlock()
	clear(m.images)
}

func (m *machine) close() {
	m.mutex.Lock()
	client := m.client
	m.client = nil
	m.mutex.Unlock()
	if client != nil {
		_ = client.Close() // nothing waits for the answer
	}
}

// diagnoseSocket says why the engine's socket could not be opened: one command on the node.
func (m *machine) diagnoseSocket(ctx context.Context) (engine.Kind, string) {
	ssh, err := m.connected(ctx)
	if err != nil {
		return engine.Lost, ""
	}
	path := shellQuote(m.connection.Socket)
	script := "if test -S " + path + "; then if test -w " + path + "; then echo writable; else echo denied; fi; else echo missing; fi; id -un; id -nG"
	output, err := sshx.Run(ctx, ssh, "sh -c "+shellQuote(script), nil)
	if err != nil {
		return engine.Failed, ""
	}
	lines := strings.Split(strings.TrimSpace(string(output.Stdout)), "\n")
	if len(lines) < 3 {
		return engine.Failed, ""
	}
	state, user, groups := lines[len(lines)-3], lines[len(lines)-2], lines[len(lines)-1]
	switch state {
	case "denied":
		return engine.Denied, fmt.Sprintf("user %s (groups: %s) may not write %s", user, groups, m.connection.Socket)
	case "missing":
		return engine.Down, fmt.Sprintf("there is no socket at %s", m.connection.Socket)
	case "writable":
		return engine.Down, fmt.Sprintf("the socket %s exists and user %s may use it, but nothing answers behind it: the engine is stopped, or sshd forbids it (AllowStreamLocalForwarding, DisableForwarding)", m.connection.Socket, user)
	}
	return engine.Failed, ""
}

// shellQuote quotes for a POSIX shell; the login shells csh and fish read it alike.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
