package sshx

import (
	"net"
	"sync"
	"time"
)

// headSize is how much of the first bytes is kept, to say what answered in place of sshd.
const headSize = 64

// wire watches the TCP connection under the SSH transport: what came first, when something came
// last, and whether it failed. Channels see only an end of file when the transport dies; the wire
// knows better, and knows it first.
type wire struct {
	net.Conn
	mu     sync.Mutex
	first  []byte
	heard  time.Time
	failed error
}

func newWire(conn net.Conn) *wire { return &wire{Conn: conn, heard: time.Now()} }

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > 0 {
		w.heard = time.Now()
		w.first = append(w.first, p[:min(n, headSize-len(w.first))]...)
	}
	if err != nil && w.failed == nil {
		w.failed = err
	}
	return n, err
}

func (w *wire) head() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.first)
}

// lastHeard is when the peer sent anything.
func (w *wire) lastHeard() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

// failure is the first read error, nil while the transport works.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}
