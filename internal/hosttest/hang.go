package hosttest

import (
	"net"
	"sync"
)

// frozen is a connection that stands still while its host hangs: what comes in is not seen, nothing
// goes out, and the connection stays open.
type frozen struct {
	net.Conn
	host   *Host
	closed chan struct{}
	once   sync.Once
}

func freezable(conn net.Conn, host *Host) *frozen {
	return &frozen{Conn: conn, host: host, closed: make(chan struct{})}
}

// Read implements net.Conn.
func (c *frozen) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.thaw()
	return n, err
}

// Write implements net.Conn.
func (c *frozen) Write(p []byte) (int, error) {
	c.thaw()
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *frozen) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// thaw returns when the host does not hang, or the connection is closed. It takes no lock: whoever
// holds the fleet's may be waiting for this very connection.
func (c *frozen) thaw() {
	for gate := c.host.hanging.Load(); gate != nil; gate = c.host.hanging.Load() {
		select {
		case <-*gate:
		case <-c.closed:
			return
		}
	}
}

// Hang makes the host accept connections and answer nothing, on new ones and on those that are open,
// as one does that is out of memory. Hang(false) lets everything go on where it stood.
func (h *Host) Hang(hanging bool) {
	var next *chan struct{}
	if hanging {
		gate := make(chan struct{})
		next = &gate
	}
	if last := h.hanging.Swap(next); last != nil {
		close(*last)
	}
}
