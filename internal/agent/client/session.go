package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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

// open starts a command. Until detach it ends with ctx.
func open(ctx context.Context, starter Starter, command string) (*session, error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	process, err := starter.Start(lifetime, command)
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
	return s, nil
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

// greet reads our first line. Its failure tells what the node said in its place.
func (s *session) greet(ctx context.Context) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = s.process.Close() })
	text, noise, err := greeting(s.reader)
	if !stop() {
		return "", context.Cause(ctx)
	}
	if err == nil {
		return text, nil
	}
	select {
	case <-s.ended:
		err = fmt.Errorf("%w (exit code %d)", err, s.code)
	case <-time.After(time.Second):
	}
	if line := lastLine(s.process.Stderr()); line != "" {
		return "", fmt.Errorf("%w; the node said: %s", err, line)
	}
	if line := lastLine(noise); line != "" {
		return "", fmt.Errorf("%w; the node said: %s", err, line)
	}
	return "", err
}
