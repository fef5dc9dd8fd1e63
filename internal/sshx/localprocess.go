package sshx

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// pipeSettles is how long the error output of an ended command is waited for: a child of it may hold the pipe.
const pipeSettles = time.Second

// localProcess is a command that was started on this machine.
type localProcess struct {
	local   *local
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *localOutput
	stderr  *tail
	ended   chan struct{}
	code    int
	err     error
}

// wait collects the exit code.
func (p *localProcess) wait() {
	err := p.command.Wait()
	var exit *exec.ExitError
	switch state := p.command.ProcessState; {
	case isClosed(p.local.done):
		p.code, p.err = -1, p.local.Err()
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		p.code = state.ExitCode()
	case errors.As(err, &exit):
		if p.code = exit.ExitCode(); p.code < 0 { // killed: as over SSH
			if status, ok := state.Sys().(syscall.WaitStatus); ok {
				p.code = 128 + int(status.Signal())
			}
		}
	default:
		p.code, p.err = -1, p.local.fail(Lost, stepCommand, err)
	}
	p.local.mutex.Lock()
	delete(p.local.processes, p)
	p.local.mutex.Unlock()
	close(p.ended)
}

// result implements Process.Wait.
func (p *localProcess) result() (int, error) {
	<-p.ended
	return p.code, p.err
}

// close implements Process.Close: it kills the command with all of its process group.
func (p *localProcess) close() error {
	if isClosed(p.ended) {
		return nil
	}
	killGroup(p.command)
	return p.stdout.reader.Close()
}

// localInput is a command's input: one that has ended or reads no more is an end of file, as over SSH.
type localInput struct{ io.WriteCloser }

// Write implements io.Writer.
func (i *localInput) Write(p []byte) (int, error) {
	n, err := i.WriteCloser.Write(p)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (i *localInput) Close() error {
	if err := i.WriteCloser.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// localOutput is a command's output; it can be read after the command's end, unlike exec's own pipe.
type localOutput struct{ reader, writer *os.File }

func newOutput(command *exec.Cmd) (*localOutput, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stdout = writer
	return &localOutput{reader, writer}, nil
}

// started leaves the writing end to the command alone.
func (o *localOutput) started() { _ = o.writer.Close() }

func (o *localOutput) abandon() error { return errors.Join(o.reader.Close(), o.writer.Close()) }

// Read implements io.Reader; the pipe is closed at its end.
func (o *localOutput) Read(p []byte) (int, error) {
	n, err := o.reader.Read(p)
	switch {
	case errors.Is(err, os.ErrClosed):
		return n, io.EOF
	case err != nil:
		_ = o.reader.Close()
	}
	return n, err
}
