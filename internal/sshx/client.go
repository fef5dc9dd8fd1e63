package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// maxSessions leaves two of sshd's default MaxSessions (10) to others on the same connection.
	maxSessions = 8
	// A dead peer is found after at most interval + patience = 13 s, plus one tick.
	keepaliveInterval = 5 * time.Second
	keepalivePatience = 8 * time.Second
)

// liveness says how often the peer is asked and how long it may be silent then.
type liveness struct{ interval, patience time.Duration }

// client implements Client.
type client struct {
	host, user string
	port       int
	ssh        *ssh.Client
	wire       *wire
	sessions   *slots
	warnings   []string
	release    func() // gives back the jump host

	end  sync.Once
	done chan struct{}
	err  *Error // set before done is closed
}

func newClient(d *dialing, w *wire, conn ssh.Conn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) *client {
	return &client{
		host: d.host, user: d.user, port: d.port,
		ssh:      ssh.NewClient(conn, channels, requests),
		wire:     w,
		sessions: newSlots(maxSessions),
		warnings: d.warnings,
		release:  d.release,
		done:     make(chan struct{}),
	}
}

// start watches the connection until it ends.
func (c *client) start(live liveness) {
	go func() {
		err := c.ssh.Wait()
		if failure := c.wire.failure(); failure != nil {
			err = failure
		}
		c.finish(err)
	}()
	go c.keepalive(live)
}

// keepalive finds a peer that vanished without a word. Any byte counts as a sign of life: the
// answer may queue behind much data on a slow link.
func (c *client) keepalive(live liveness) {
	answers := make(chan error, 1)
	ask := func() {
		// The answer's content does not matter: OpenSSH refuses the unknown request politely.
		_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
		answers <- err
	}
	tick := time.NewTicker(live.interval)
	defer tick.Stop()
	check := time.NewTicker(max(live.patience/8, time.Millisecond))
	defer check.Stop()
	var asked time.Time // zero while no question is open
	for {
		select {
		case <-c.done:
			return
		case err := <-answers:
			asked = time.Time{}
			if err != nil {
				c.finish(err)
				return
			}
		case <-tick.C:
			if asked.IsZero() {
				asked = time.Now()
				go ask()
			}
		case <-check.C:
			if asked.IsZero() {
				continue
			}
			since := asked
			if heard := c.wire.lastHeard(); heard.After(since) {
				since = heard
			}
			if silent := time.Since(since); silent > live.patience {
				c.finish(fmt.Errorf("no sign of life for %s", silent.Round(time.Millisecond)))
				return
			}
		}
	}
}

// finish ends the connection, once, for the reason given.
func (c *client) finish(reason error) {
	c.end.Do(func() {
		c.err = c.fail(Lost, "connection", reason)
		close(c.done)
		// Not Client.Close: that would first write a message to a peer that may be gone.
		_ = c.wire.Close()
		c.release()
	})
}

// Done implements Client.
func (c *client) Done() <-chan struct{} { return c.done }

// Err implements Client.
func (c *client) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Warnings implements Client.
func (c *client) Warnings() []string { return c.warnings }

// Close implements Client.
func (c *client) Close() error {
	c.finish(net.ErrClosed)
	return nil
}

// lost is the reason of the end if the transport failed, also in the moment before it is
// announced by Done; nil while it works.
func (c *client) lost() error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	if err := c.wire.failure(); err != nil {
		return c.fail(Lost, "connection", err)
	}
	return nil
}

// DialContext implements Client.
func (c *client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, c.fail(interruptedKind(ctx), stepChannel, context.Cause(ctx))
	}
	conn, err := attempt(ctx, c, stepChannel+" to "+address, func() (net.Conn, error) { return c.ssh.Dial(network, address) },
		func(late net.Conn) { _ = late.Close() })
	if err != nil {
		return nil, err
	}
	return newConn(c, conn, network, address), nil
}

// attempt runs open, which knows no context, and gives up on it at once when the context or the
// connection ends; what it still opens is handed to discard.
func attempt[T any](ctx context.Context, c *client, step string, open func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	opened := make(chan result, 1)
	go func() {
		value, err := open()
		opened <- result{value, err}
	}()
	abandon := func() {
		go func() {
			if late := <-opened; late.err == nil {
				discard(late.value)
			}
		}()
	}
	select {
	case r := <-opened:
		if r.err == nil {
			return r.value, nil
		}
		if lost := c.lost(); lost != nil {
			return none, lost
		}
		var known *Error
		if errors.As(r.err, &known) {
			return none, known
		}
		return none, c.fail(openKind(r.err), step, r.err)
	case <-ctx.Done():
		abandon()
		return none, c.fail(interruptedKind(ctx), step, context.Cause(ctx))
	case <-c.done:
		abandon()
		return none, c.err
	}
}

func (c *client) fail(kind Kind, step string, err error) *Error {
	return &Error{Kind: kind, Host: c.host, Port: c.port, User: c.user, Step: step, Err: err}
}
