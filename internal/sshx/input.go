package sshx

import (
	"io"
	"sync"
)

// input is a command's standard input over SSH. The library's own may not be closed while it is written
// to; here the end of file follows what is being written.
type input struct {
	inner io.WriteCloser

	mutex   sync.Mutex
	writers int
	closed  bool
}

// Write implements io.Writer.
func (i *input) Write(p []byte) (int, error) {
	i.mutex.Lock()
	if i.closed {
		i.mutex.Unlock()
		return 0, io.EOF
	}
	i.writers++
	i.mutex.Unlock()
	n, err := i.inner.Write(p)
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.writers--; i.closed && i.writers == 0 {
		_ = i.inner.Close() // Whoever closed has gone on.
	}
	return n, err
}

// Close implements io.Closer. It never waits for a writer, who may wait for the peer.
func (i *input) Close() error {
	i.mutex.Lock()
	idle := !i.closed && i.writers == 0
	i.closed = true
	i.mutex.Unlock()
	if idle {
		return i.inner.Close()
	}
	return nil
}
