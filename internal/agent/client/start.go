package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// startTimeout bounds one start of the agent: a login shell with slow start files takes seconds.
const startTimeout = 30 * time.Second

// finder gives the agent's program for an architecture.
type finder func(architecture string) (embedded.Program, error)

// Start starts the agent on a node, and uploads it first if it is not there. A node that has it
// costs one command. The context bounds the start only; the agent lives until Close or until its
// session ends. A failure is an *agent.Error.
func Start(ctx context.Context, host string, starter Starter, options Options) (agent.Agent, error) {
	started, err := start(ctx, host, starter, embedded.Linux, options)
	if err != nil {
		return nil, &agent.Error{Host: host, Step: "start the agent", Err: err}
	}
	return started, nil
}

func start(ctx context.Context, host string, starter Starter, find finder, options Options) (agent.Agent, error) {
	command, err := startCommand(find)
	if err != nil {
		return nil, err
	}
	started, err := attempt(ctx, host, starter, command, options)
	var absent *missing
	if !errors.As(err, &absent) {
		return started, err
	}
	if absent.present {
		return nil, fmt.Errorf("%s is there but may not be run: its file system is mounted noexec, or the file is another user's", absent.path)
	}
	architecture, err := absent.architecture()
	if err != nil {
		return nil, err
	}
	program, err := find(architecture)
	if err != nil {
		return nil, err
	}
	if err := upload(ctx, starter, program); err != nil {
		return nil, err
	}
	return attempt(ctx, host, starter, command, options)
}

// startCommand is the start script with the digests of the programs that this build carries.
func startCommand(find finder) (string, error) {
	digests := map[string]string{}
	for _, architecture := range []string{"amd64", "arm64"} {
		program, err := find(architecture)
		if errors.Is(err, embedded.ErrMissing) {
			continue
		}
		if err != nil {
			return "", err
		}
		digests[architecture] = program.SHA256
	}
	return startScript(digests), nil
}

// attempt runs the start script once. A node without the agent is a *missing.
func attempt(ctx context.Context, host string, starter Starter, command string, options Options) (agent.Agent, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer from the agent within %s", startTimeout))
	defer cancel()
	session, err := open(ctx, starter, command)
	if err != nil {
		return nil, err
	}
	started, err := session.begin(ctx, host, options)
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
	text, err := s.greet(ctx)
	if err == nil {
		err = welcome(text)
	}
	gate.open(err)
	if err != nil {
		return nil, err
	}
	hello, _ := wire.ParseHello(text)
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

// welcome judges the first line.
func welcome(text string) error {
	if absent, ok := parseMissing(text); ok {
		return absent
	}
	hello, ok := wire.ParseHello(text)
	switch {
	case !ok:
		return fmt.Errorf("the node answered %q, which is not an agent's first line", lastLine(text))
	case hello.Protocol != agent.ProtocolVersion && hello.ReadOnly:
		return &OutdatedError{Protocol: hello.Protocol, Architecture: hello.Architecture}
	case hello.Protocol != agent.ProtocolVersion:
		return fmt.Errorf("the agent on the node speaks protocol %d, this build speaks %d", hello.Protocol, agent.ProtocolVersion)
	}
	return nil
}
