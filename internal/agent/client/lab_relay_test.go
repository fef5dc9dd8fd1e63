//go:build lab

package client_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay is a line to a server that can be cut as a firewall cuts it: what is sent is lost, and neither
// end hears of it.
type relay struct {
	port int
	once sync.Once
	dead chan struct{}
}

func newRelay(t *testing.T, address string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(listener.Addr())
	}
	r := &relay{port: at.Port, dead: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address) //nolint:noctx // ends with the test
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() { _, _ = near.Close(), far.Close() })
			go r.carry(far, near)
			go r.carry(near, far)
		}
	}()
	return r
}

// cut drops everything from now on.
func (r *relay) cut() { r.once.Do(func() { close(r.dead) }) }

// carry copies until the line is cut; then it swallows what comes, and an end too.
func (r *relay) carry(to io.WriteCloser, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-r.dead:
			if err != nil {
				return
			}
			continue
		default:
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			_ = to.Close()
			return
		}
	}
}
