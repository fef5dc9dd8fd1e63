package sshx

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// conn is a channel as a net.Conn with deadlines, which SSH channels lack.
//
// Reads go through a pump, so that a read deadline behaves as on a socket: Read returns
// os.ErrDeadlineExceeded and the connection stays usable (net/http and gRPC rely on it to wake a
// reader). A write that misses its deadline closes the channel: a part of the message may be on
// its way, so that nothing sensible could follow, and callers treat it as fatal on sockets too.
type conn struct {
	client        *client
	inner         net.Conn
	local, remote net.Addr

	readMu  sync.Mutex
	rest    []byte        // what is left of the last chunk
	chunks  chan []byte   // from the pump
	taken   chan struct{} // to the pump: the chunk was consumed
	ended   chan struct{} // the pump stopped; readErr says why
	readErr error

	reads, writes *deadline
	once          sync.Once
	closed        chan struct{}
}

func newConn(c *client, inner net.Conn, network, address string) *conn {
	n := &conn{
		client: c, inner: inner,
		local: addr{network, c.host}, remote: addr{network, address},
		chunks: make(chan []byte), taken: make(chan struct{}, 1), ended: make(chan struct{}),
		reads: newDeadline(), writes: newDeadline(),
		closed: make(chan struct{}),
	}
	go n.pump()
	return n
}

// pumpSize is a channel packet's usual payload (32 KiB).
const pumpSize = 32 << 10

func (n *conn) pump() {
	defer close(n.ended)
	buffer := make([]byte, pumpSize)
	for {
		count, err := n.inner.Read(buffer)
		if count > 0 {
			select {
			case n.chunks <- buffer[:count]:
			case <-n.closed:
				return
			}
			select {
			case <-n.taken:
			case <-n.closed:
				return
			}
		}
		if err != nil {
			n.readErr = n.explain(err)
			return
		}
	}
}

// Read implements net.Conn.
func (n *conn) Read(p []byte) (int, error) {
	n.readMu.Lock()
	defer n.readMu.Unlock()
	switch {
	case isClosed(n.closed):
		return 0, net.ErrClosed
	case isClosed(n.reads.passed()):
		return 0, os.ErrDeadlineExceeded
	case len(p) == 0:
		return 0, nil
	}
	if len(n.rest) == 0 {
		select {
		case n.rest = <-n.chunks:
		case <-n.ended:
			if n.readErr == nil {
				return 0, net.ErrClosed
			}
			return 0, n.readErr
		case <-n.closed:
			return 0, net.ErrClosed
		case <-n.reads.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
	count := copy(p, n.rest)
	if n.rest = n.rest[count:]; len(n.rest) == 0 {
		n.taken <- struct{}{}
	}
	return count, nil
}

// Write implements net.Conn.
func (n *conn) Write(p []byte) (int, error) {
	switch {
	case isClosed(n.closed):
		return 0, net.ErrClosed
	case isClosed(n.writes.passed()):
		return 0, os.ErrDeadlineExceeded
	}
	finished := make(chan struct{})
	late := make(chan bool, 1)
	go func() {
		select {
		case <-n.writes.passed():
			late <- true
			_ = n.Close()
		case <-finished:
			late <- false
		}
	}()
	count, err := n.inner.Write(p)
	close(finished)
	if wasLate := <-late; err != nil {
		switch {
		case wasLate:
			err = os.ErrDeadlineExceeded
		case isClosed(n.closed):
			err = net.ErrClosed
		default:
			err = n.explain(err)
		}
	}
	return count, err
}

// explain names a lost connection, which the channel reports as a plain end of file.
func (n *conn) explain(err error) error {
	if lost := n.client.lost(); lost != nil {
		return lost
	}
	return err
}

// Close implements net.Conn. It never waits for the peer: telling it happens aside.
func (n *conn) Close() error {
	n.once.Do(func() {
		close(n.closed)
		go func() { _ = n.inner.Close() }()
	})
	return nil
}

// CloseWrite sends the end of file and keeps the other direction open.
func (n *conn) CloseWrite() error {
	half, ok := n.inner.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	if err := half.CloseWrite(); err != nil && !errors.Is(err, io.EOF) {
		return n.explain(err)
	}
	return nil
}

// LocalAddr implements net.Conn.
func (n *conn) LocalAddr() net.Addr { return n.local }

// RemoteAddr implements net.Conn.
func (n *conn) RemoteAddr() net.Addr { return n.remote }

// SetDeadline implements net.Conn.
func (n *conn) SetDeadline(t time.Time) error {
	n.reads.set(t)
	n.writes.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (n *conn) SetReadDeadline(t time.Time) error {
	n.reads.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (n *conn) SetWriteDeadline(t time.Time) error {
	n.writes.set(t)
	return nil
}

// addr is the end of a channel as seen from the machine.
type addr struct{ network, address string }

// Network implements net.Addr.
func (a addr) Network() string { return a.network }

// String implements net.Addr.
func (a addr) String() string { return a.address }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
