package hosttest

import (
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// backlog is a listener without a socket: connections are handed to it.
type backlog struct {
	name  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newBacklog(name string) *backlog {
	return &backlog{name: name, conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *backlog) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *backlog) Close() error {
	b.once.Do(func() { close(b.done) })
	return nil
}

// Addr implements net.Listener.
func (b *backlog) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: b.name} }

// dial gives the server a new connection and returns the other end.
func (b *backlog) dial() (net.Conn, error) {
	near, far := net.Pipe()
	return b.hand(near, far)
}

// hand gives the server one end of a connection and returns the other.
func (b *backlog) hand(near, far net.Conn) (net.Conn, error) {
	select {
	case b.conns <- far:
		return near, nil
	case <-b.done:
		return nil, errors.Join(net.ErrClosed, near.Close(), far.Close())
	}
}

// splice joins an SSH channel and a connection until either ends. The connection has deadlines,
// which a channel lacks and HTTP servers need.
func splice(channel ssh.Channel, requests <-chan *ssh.Request, conn net.Conn) {
	var copies sync.WaitGroup
	// The end of the client's input is not the end of the channel: an exec's output may follow it.
	// The request stream ends with the channel itself.
	copies.Go(func() {
		ssh.DiscardRequests(requests)
		_ = conn.Close() // Closing twice is how either side ends the other.
	})
	copies.Go(func() { _, _ = io.Copy(conn, channel) })
	_, _ = io.Copy(channel, conn)
	_ = channel.Close()
	_ = conn.Close()
	copies.Wait()
}
