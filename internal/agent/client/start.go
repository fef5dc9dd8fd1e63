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
func Start(ctx context.Context, host string, starter Starter) (agent.Agent, error) {
	started, err := start(ctx, host, starter, embedded.Linux)
	if err != nil {
		return nil, &agent.Error{Host: host, Step: "start the agent", Err: err}
	}
	return started, nil
}

func start(ctx context.Context, host string, starter Starter, find finder) (agent.Agent, error) {
	command, err := startCommand(find)
	if err != nil {
		return nil, err
	}
	started, err := attempt(ctx, host, starter, command)
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
	return attempt(ctx, host, starter, command)
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
func attempt(ctx context.Context, host string, starter Starter, command string) (agent.Agent, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer from the agent within %s", startTimeout))
	defer cancel()
	session, err := open(ctx, starter, command)
	if err != nil {
		return nil, err
	}
	started, err := session.begin(ctx, host)
	if err != nil {
		return nil, errors.Join(err, session.giveUp(ctx))
	}
	return started, nil
}

// begin reads the first line and takes up HTTP/2 behind it.
func (s *session) begin(ctx context.Context, host string) (agent.Agent, error) {
	text, err := s.greet(ctx)
	if err != nil {
		return nil, err
	}
	if absent, ok := parseMissing(text); ok {
		return nil, absent
	}
	hello, ok := wire.ParseHello(text)
	if !ok {
		return nil, fmt.Errorf("the node answered %q, which is not an agent's first line", lastLine(text))
	}
	if hello.Protocol != agent.ProtocolVersion {
		return nil, fmt.Errorf("the agent on the node speaks protocol %d, this build speaks %d", hello.Protocol, agent.ProtocolVersion)
	}
	started, err := connect(ctx, host, s)
	if err != nil {
		return nil, err
	}
	s.detach()
	return started, nil
}
