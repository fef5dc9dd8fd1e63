package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// proxy forwards TCP connections and holds every byte back for a while in each direction, as a long
// line does: order kept, no limit of bandwidth. With delay 0 it forwards at once.
type proxy struct {
	listener net.Listener
	target   string
	delay    atomic.Int64 // one way, in nanoseconds; of connections accepted from now on
}

// chunk is what was read at one moment.
type chunk struct {
	data []byte
	due  time.Time
}

const (
	chunkSize = 64 << 10
	// inFlight bounds what one direction holds: 64 MiB, which at 10 ms is more than 6 GB/s.
	inFlight = 1024
)

// newProxy listens on an address of the loopback network, on any port, until ctx ends.
func newProxy(ctx context.Context, address, target string) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("open a delay proxy: %w", err)
	}
	p := &proxy{listener: listener, target: target}
	go p.serve(ctx)
	return p, nil
}

// port is where it listens.
func (p *proxy) port() int {
	address, ok := p.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return address.Port
}

// setDelay sets the delay of one direction: half of what it adds to a round trip.
func (p *proxy) setDelay(oneWay time.Duration) { p.delay.Store(int64(oneWay)) }

func (p *proxy) close() error { return p.listener.Close() }

func (p *proxy) serve(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed: nobody connects any more
		}
		go p.forward(ctx, conn)
	}
}

// forward carries one connection to its end.
func (p *proxy) forward(ctx context.Context, near net.Conn) {
	delay := time.Duration(p.delay.Load())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = near.Close() })
	out := make(chan chunk, inFlight)
	go collect(ctx, near, out, delay)
	// Over a real line the far end's accept returns 1.5 round trips after the near end began to
	// connect; here the near end is connected already.
	if pause(ctx, 3*delay) != nil {
		return
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return // The near end sees its connection end, as from a host that resets it.
	}
	context.AfterFunc(ctx, func() { _ = far.Close() })
	back := make(chan chunk, inFlight)
	go collect(ctx, far, back, delay)
	whole := make(chan bool, 2)
	go func() { whole <- deliver(ctx, far, out) == nil }()
	go func() { whole <- deliver(ctx, near, back) == nil }()
	if <-whole { // One direction has ended in good order: the other may go on. A broken one ends both.
		<-whole
	}
}

// collect reads until the end and stamps what it read; it closes the channel at the end.
func collect(ctx context.Context, from net.Conn, to chan<- chunk, delay time.Duration) {
	defer close(to)
	for {
		buffer := make([]byte, chunkSize)
		count, err := from.Read(buffer)
		if count > 0 {
			select {
			case to <- chunk{data: buffer[:count], due: time.Now().Add(delay)}:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if delay > 0 && errors.Is(err, io.EOF) {
				_ = pause(ctx, delay) // the end travels as long as the rest
			}
			return
		}
	}
}

// deliver writes each chunk when it is due, then ends that direction.
func deliver(ctx context.Context, to net.Conn, from <-chan chunk) error {
	for one := range from {
		if wait := time.Until(one.due); wait > 0 {
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
		if _, err := to.Write(one.data); err != nil {
			return err
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// pause waits, or until the context ends.
func pause(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
