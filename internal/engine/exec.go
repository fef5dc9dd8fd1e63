package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

const (
	// maxExecOutput bounds each stream of an Exec: its output is held in memory.
	maxExecOutput = 4 << 20
	// exitPoll and exitTimeout: the exit code may follow the end of the output by a moment.
	exitPoll    = 50 * time.Millisecond
	exitTimeout = 10 * time.Second
)

var errTooMuch = fmt.Errorf("the command printed more than %d MiB", maxExecOutput>>20)

// Exec implements Engine. When the context ends, the connection is closed; the engine itself has no
// way to end an exec, so a command that ignores its closed output goes on in the container.
func (d *docker) Exec(ctx context.Context, id string, command []string) (ExecResult, error) {
	if err := d.ready(ctx); err != nil {
		return ExecResult{}, err
	}
	step := "run a command in container " + id
	if len(command) > 0 {
		step = "run " + command[0] + " in container " + id // arguments may hold secrets
	}
	created, err := d.api.ExecCreate(ctx, id, client.ExecCreateOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return ExecResult{}, d.fail(ctx, step, err)
	}
	attached, err := d.api.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return ExecResult{}, d.fail(ctx, step, err)
	}
	defer attached.Close()
	stop := context.AfterFunc(ctx, attached.Close)
	defer stop()
	stdout, stderr := &bounded{limit: maxExecOutput}, &bounded{limit: maxExecOutput}
	if _, err := stdcopy.StdCopy(stdout, stderr, attached.Reader); err != nil {
		return ExecResult{}, d.fail(ctx, step, err)
	}
	if ctx.Err() != nil {
		return ExecResult{}, d.fail(ctx, step, ctx.Err())
	}
	code, err := d.exitCode(ctx, created.ID, step)
	return ExecResult{ExitCode: code, Stdout: stdout.String(), Stderr: stderr.String()}, err
}

func (d *docker) exitCode(ctx context.Context, exec, step string) (int, error) {
	until, cancel := context.WithTimeoutCause(ctx, exitTimeout,
		fmt.Errorf("the output ended, but the command still runs after %s", exitTimeout))
	defer cancel()
	for {
		state, err := d.api.ExecInspect(until, exec, client.ExecInspectOptions{})
		if err != nil {
			return -1, d.fail(until, step, err)
		}
		if !state.Running {
			return state.ExitCode, nil
		}
		select {
		case <-until.Done():
			return -1, d.fail(until, step, until.Err())
		case <-time.After(exitPoll):
		}
	}
}

// bounded collects output and refuses more than its limit.
type bounded struct {
	limit int
	kept  []byte
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > b.limit {
		return 0, errTooMuch
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}

// String is what was collected.
func (b *bounded) String() string { return string(b.kept) }
