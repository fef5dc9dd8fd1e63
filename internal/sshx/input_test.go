package sshx

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// pipe notes what is done to it; a write waits until it is let go.
type pipe struct {
	begun, free chan struct{}
	done        chan string
}

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (int, error) {
	p.begun <- struct{}{}
	<-p.free
	p.done <- string(b)
	return len(b), nil
}

// Close implements io.Closer.
func (p *pipe) Close() error {
	p.done <- "end"
	return nil
}

// TestInput: the end of file comes behind what is being written, and whoever closes does not wait.
func TestInput(t *testing.T) {
	inner := &pipe{begun: make(chan struct{}), free: make(chan struct{}), done: make(chan string, 4)}
	in := &input{inner: inner}
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(in, "all of it")
		wrote <- err
	}()
	<-inner.begun
	closed := make(chan error, 1)
	go func() { closed <- errors.Join(in.Close(), in.Close()) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close waits for the writer")
	}
	if _, err := io.WriteString(in, "more"); !errors.Is(err, io.EOF) {
		t.Errorf("a write behind the end: %v", err)
	}
	close(inner.free)
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if got := []string{<-inner.done, <-inner.done}; !slices.Equal(got, []string{"all of it", "end"}) || len(inner.done) > 0 {
		t.Errorf("%q, and %d more", got, len(inner.done))
	}
}

func TestInputThatNobodyWritesTo(t *testing.T) {
	inner := &pipe{done: make(chan string, 4)}
	in := &input{inner: inner}
	if err := errors.Join(in.Close(), in.Close()); err != nil || len(inner.done) != 1 {
		t.Errorf("%d ends, %v", len(inner.done), err)
	}
}
