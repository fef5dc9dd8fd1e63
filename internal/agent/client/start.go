package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

const (
	// startTimeout bounds one start of the agent: a login shell with slow start files takes seconds.
	startTimeout = 30 * time.Second
	// silenceTimeout is how long the first try waits for a sign of life. The next one finds a shell that
	// waits for input in place of the command, and gives a slow one its time.
	silenceTimeout = 5 * time.Second
)

// errSilent is the end of a wait for the first line.
var errSilent = errors.New("the login shell neither answers nor ends")

// finder gives the agent's program for an architecture.
type finder func(architecture string) (embedded.Program, error)

// Start starts the agent on a node, and uploads it first if it is not there. A node that has it
// costs one command. The context bounds the start only; the agent lives until Close or until its
// session ends. A failure is an *agent.Error, of which a *StartError knows the next step.
func Start(ctx context.Context, host string, starter Starter, options Options) (agent.Agent, error) {
	started, err := start(ctx, host, starter, embedded.Linux, options)
	if err != nil {
		return nil, &agent.Error{Host: host, Step: "start the agent", Err: err}
	}
	return started, nil
}

// bootstrap is one start of the agent on a node.
type bootstrap struct {
	host    string
	starter Starter
	options Options
	folders folders
	// digests names the programs that this build carries by their architectures.
	digests map[string]string
}

func start(ctx context.Context, host string, starter Starter, find finder, options Options) (agent.Agent, error) {
	b := &bootstrap{host: host, starter: starter, options: options, folders: options.folders(), digests: map[string]string{}}
	if options.Folder != "" {
		if err := CheckFolder(options.Folder); err != nil {
			return nil, err
		}
	}
	if err := b.carry(find); err != nil {
		return nil, err
	}
	started, w, err := b.reach(ctx)
	var absent *missing
	if !errors.As(err, &absent) {
		return started, err
	}
	architecture, err := absent.architecture()
	if err != nil {
		return nil, err
	}
	program, err := find(architecture)
	if err != nil {
		return nil, &StartError{Kind: StartNotBuilt, Err: err}
	}
	path, err := b.upload(ctx, w, program)
	if err != nil {
		return nil, err
	}
	started, err = b.attempt(ctx, w, cmp.Or(b.options.patience, startTimeout))
	if errors.As(err, &absent) {
		return nil, &StartError{Kind: StartCleaned, Message: path + " was uploaded, and is not there now: something cleans that folder"}
	}
	return started, err
}

// carry takes the digests of the programs of this build.
func (b *bootstrap) carry(find finder) error {
	for _, architecture := range []string{"amd64", "arm64"} {
		program, err := find(architecture)
		if errors.Is(err, embedded.ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		b.digests[architecture] = program.SHA256
	}
	return nil
}

// reach starts the agent the usual way, and if that had no answer, carefully. It tells the way that led
// to an answer.
func (b *bootstrap) reach(ctx context.Context) (agent.Agent, way, error) {
	usual := way{shell: "sh"}
	started, err := b.attempt(ctx, usual, cmp.Or(b.options.silence, silenceTimeout))
	if !unanswered(err) {
		return started, usual, err
	}
	// By its path first; a restricted shell takes the name only.
	for _, shell := range []string{"/bin/sh", "sh"} {
		if ctx.Err() != nil {
			break
		}
		careful := way{shell: shell, careful: true}
		started, again := b.attempt(ctx, careful, cmp.Or(b.options.patience, startTimeout))
		if !unanswered(again) {
			return started, careful, again
		}
		if errors.Is(again, errSilent) {
			break
		}
	}
	return nil, usual, err // The usual way's failure is the one to explain.
}

// unanswered says that no line of ours came.
func unanswered(err error) bool { return errors.Is(err, errSilent) || errors.Is(err, errNoGreeting) }

// attempt runs the start script once. A node without the agent is a *missing.
func (b *bootstrap) attempt(ctx context.Context, w way, patience time.Duration) (agent.Agent, error) {
	silent := &StartError{Kind: StartSilent, Err: fmt.Errorf("%w within %s", errSilent, patience)}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, silent)
	defer cancel()
	session, err := open(ctx, b.starter, w, startScript(w, b.folders, b.digests))
	if err != nil {
		return nil, err
	}
	started, err := session.begin(ctx, b.host, b.options)
	if err != nil {
		return nil, errors.Join(err, session.giveUp(ctx))
	}
	return started, nil
}

// begin takes up HTTP/2, sends what is asked together with the start, and reads the first line. What
// is sent too early is lost with a command that turns out to be no agent.
func (s *session) begin(ctx context.Context, host string, options Options) (agent.Agent, error) {
	gate := newGate(s.reader)
	connected := s.connectBehind(ctx, host, gate, options)
	hello, err := s.welcome(ctx)
	gate.open(err)
	if err != nil {
		return nil, err
	}
	select {
	case made := <-connected:
		if made.err != nil {
			return nil, made.err
		}
		made.readOnly = hello.ReadOnly
		s.detach()
		return made.connection, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// welcome reads and judges the first line.
func (s *session) welcome(ctx context.Context) (wire.Hello, error) {
	text, err := s.greet(ctx)
	if err != nil {
		return wire.Hello{}, err
	}
	if absent, ok := parseMissing(text); ok {
		return wire.Hello{}, absent
	}
	hello, ok := wire.ParseHello(text)
	switch {
	case !ok:
		err = fmt.Errorf("the node answered %q, which is not an agent's first line", lastLine(text))
	case hello.Protocol != agent.ProtocolVersion && hello.ReadOnly:
		err = &OutdatedError{Protocol: hello.Protocol, Architecture: hello.Architecture}
	case hello.Protocol != agent.ProtocolVersion:
		err = wrongProtocol(hello.Protocol)
	}
	return hello, err
}
