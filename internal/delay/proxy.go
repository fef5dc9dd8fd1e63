package delay

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Proxy forwards TCP connections over a [Line] each.
type Proxy struct {
	listener net.Listener
	target   string
	oneWay   atomic.Int64 // nanoseconds
	accepted atomic.Int64
}

// NewProxy listens on an address of the loopback network, on any port, until ctx ends or Close. Its
// lines have no delay until SetDelay.
func NewProxy(ctx context.Context, address, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("open a delay proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target}
	go p.serve(ctx)
	return p, nil
}

// Port is where it listens.
func (p *Proxy) Port() int {
	address, ok := p.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return address.Port
}

// SetDelay sets the delay of one direction, half of what it adds to a round trip, for connections that
// are made from now on.
func (p *Proxy) SetDelay(oneWay time.Duration) { p.oneWay.Store(int64(oneWay)) }

// Connections counts those that were accepted.
func (p *Proxy) Connections() int64 { return p.accepted.Load() }

// Close stops listening; what is connected goes on.
func (p *Proxy) Close() error { return p.listener.Close() }

func (p *Proxy) serve(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed: nobody connects any more
		}
		p.accepted.Add(1)
		go p.forward(ctx, conn)
	}
}

// forward carries one connection to its end.
func (p *Proxy) forward(ctx context.Context, conn net.Conn) {
	oneWay := time.Duration(p.oneWay.Load())
	near := Over(conn, oneWay)
	defer near.Close() //nolint:errcheck // it carried what there was
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The far end of a real line hears of the connection only now.
	if Pause(ctx, 3*oneWay) != nil {
		return
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return // The near end sees its connection end, as from a host that resets it.
	}
	defer far.Close() //nolint:errcheck // as above
	context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	whole := make(chan bool, 2)
	carry := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		}
		whole <- err == nil
	}
	go carry(far, near)
	go carry(near, far)
	if <-whole { // One direction has ended in good order: the other may go on. A broken one ends both.
		<-whole
	}
}
