package client

import (
	"context"
	"io"
	"sync"
)

// gate holds a reader's bytes back until it is opened: HTTP/2 is taken up before the node's first line
// is read, and must not see it.
type gate struct {
	reader io.Reader
	opened chan struct{}
	once   sync.Once
	err    error
}

func newGate(reader io.Reader) *gate { return &gate{reader: reader, opened: make(chan struct{})} }

// open lets readers through, or fails them.
func (g *gate) open(err error) {
	g.once.Do(func() {
		g.err = err
		close(g.opened)
	})
}

// Read implements io.Reader.
func (g *gate) Read(p []byte) (int, error) {
	<-g.opened
	if g.err != nil {
		return 0, g.err
	}
	return g.reader.Read(p)
}

// ahead is an answer that was asked for before anybody wanted it. It is given once.
type ahead[T any] struct {
	mutex sync.Mutex
	done  chan struct{} // nil: nothing was asked, or the answer is taken
	value T
	err   error
}

// ask puts the question.
func (a *ahead[T]) ask(question func() (T, error)) {
	done := make(chan struct{})
	a.done = done
	go func() {
		a.value, a.err = question()
		close(done)
	}()
}

// take waits for the answer; taken is false if there is none.
func (a *ahead[T]) take(ctx context.Context) (value T, taken bool, err error) {
	a.mutex.Lock()
	done := a.done
	a.done = nil
	a.mutex.Unlock()
	if done == nil {
		return value, false, nil
	}
	select {
	case <-done:
		return a.value, true, a.err
	case <-ctx.Done():
		return value, true, context.Cause(ctx)
	}
}

// drop forgets the answer.
func (a *ahead[T]) drop() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.done = nil
}
