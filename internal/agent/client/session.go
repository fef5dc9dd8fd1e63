package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// closeTimeout is what an agent gets to end by itself when its input has ended.
const closeTimeout = 2 * time.Second

// session is a command on the node whose first line is read by us.
type session struct {
	process *Process
	reader  *bufio.Reader
	// detach frees the command from the context that it was started with.
	detach func() bool
	cancel context.CancelFunc
	close  func() error
	// ended is closed when the command is gone; code is its exit code then.
	ended chan struct{}
	code  int
}

// open starts a script. Until detach it ends with ctx.
func open(ctx context.Context, starter Starter, w way, script string) (*session, error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	process, err := starter.Start(lifetime, w.command(script))
	if err != nil {
		detach()
		cancel()
		return nil, err
	}
	s := &session{
		process: process, reader: bufio.NewReader(process.Stdout),
		detach: detach, cancel: cancel, ended: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.shut)
	go func() {
		defer close(s.ended)
		// The code is all that is wanted: what went wrong on the way shows on the output.
		s.code, _ = process.Wait()
	}()
	if input := w.input(script); input != "" {
		if err := s.prompt(ctx, input); err != nil {
			return nil, errors.Join(err, s.giveUp(ctx))
		}
	}
	return s, nil
}

// prompt sends a line of input and waits until it is taken.
func (s *session) prompt(ctx context.Context, line string) error {
	// It is little, so that this does not wait; a failure shows on the output.
	_, _ = io.WriteString(s.process.Stdin, line)
	text, err := s.greet(ctx)
	if err == nil && text != ready {
		err = fmt.Errorf("the node answered %q to a line of input", lastLine(text))
	}
	return err
}

// shut ends the command: kindly, by the end of its input, then by force.
func (s *session) shut() error {
	defer s.cancel()
	defer s.detach()
	// The input may be closed already, by us or by a lost connection: that is no failure here.
	_ = s.process.Stdin.Close()
	select {
	case <-s.ended:
		_ = s.process.Close()
		return nil
	case <-time.After(closeTimeout):
	}
	err := s.process.Close()
	select {
	case <-s.ended:
		return nil
	case <-time.After(closeTimeout):
		return errors.Join(errors.New("the command on the node does not end"), err)
	}
}

// giveUp ends a command that failed: kindly, or by force at once if nobody waits any more.
func (s *session) giveUp(ctx context.Context) error {
	if ctx.Err() == nil {
		return s.close()
	}
	defer s.cancel()
	return s.process.Close()
}

// greet reads our first line. Its failure tells what the node said in its place. When ctx ends it
// does not wait for the output to end: a child of a killed command may hold it open.
func (s *session) greet(ctx context.Context) (string, error) {
	type answer struct {
		text, noise string
		err         error
	}
	answers := make(chan answer, 1)
	go func() {
		text, noise, err := greeting(s.reader)
		answers <- answer{text, noise, err}
	}()
	var got answer
	select {
	case got = <-answers:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if got.err == nil {
		return got.text, nil
	}
	err := got.err
	select {
	case <-s.ended:
		err = fmt.Errorf("%w (exit code %d)", err, s.code)
	case <-time.After(time.Second):
	}
	if line := cmp.Or(lastLine(s.process.Stderr()), lastLine(got.noise)); line != "" {
		err = fmt.Errorf("%w; the node said: %s", err, line)
	}
	return "", &StartError{Kind: StartNoAnswer, Err: err}
}
