package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// handshake makes one connection. The context ends it at any point, since closing the TCP
// connection wakes whatever waits on it; ssh.ClientConfig.Timeout would cover the TCP part alone.
func (d *dialing) handshake(caller, bounded context.Context, algorithms []string) (*client, *Error) {
	raw, err := d.open(bounded)
	if err != nil {
		if bounded.Err() != nil {
			return nil, d.interrupted(caller, stepDial)
		}
		var through *Error
		if errors.As(err, &through) {
			return nil, through // a jump host's own failure, which names it
		}
		return nil, d.fail(dialKind(err), stepDial, err)
	}
	w := newWire(raw)
	stop := context.AfterFunc(bounded, func() {
		_ = w.Close()
		d.ids.close()
	})
	defer stop()

	host := &hostCheck{trust: d.trust}
	first := d.offered
	login := &login{dialing: d, answered: first}
	config := &ssh.ClientConfig{
		User:              d.user,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback:   host.callback,
		AuthCallback:      login.next,
	}
	conn, channels, requests, err := ssh.NewClientConn(w, d.target(), config)
	if err == nil && !stop() {
		_ = conn.Close()
		err = bounded.Err()
	}
	if err == nil {
		return newClient(d, w, conn, channels, requests), nil
	}
	_ = w.Close()
	rejected, trusted := host.result()
	if rejected != nil {
		return nil, d.locate(rejected, stepHandshake)
	}
	heard := w.head()
	kind, step := handshakeKind(err, trusted, heard)
	if _, ok := raw.(*commandConn); ok && kind == Busy {
		kind = ProxyFailed
	}
	if bounded.Err() != nil && (caller.Err() != nil || heard == "" || strings.Contains(heard, sshBanner)) {
		return nil, d.interrupted(caller, step)
	}
	if heard != "" && !strings.Contains(heard, sshBanner) {
		err = fmt.Errorf("it answered %q: %w", heard, err)
	}
	if login.answered > first {
		d.offered = login.answered // a key that was cut short is offered anew
	}
	failure := d.fail(kind, step, proxySaid(raw, err))
	failure.Methods, failure.Partial = login.methods, login.partial
	return nil, failure
}

// login offers the keys one after the other, each to be seen by the host once, over all connections: where
// it ends the connection after some, the next one goes on with the rest.
type login struct {
	dialing  *dialing
	methods  []string
	partial  bool
	answered int // how many keys the host has refused, over all connections
}

// next gives the next method to try; nil ends the login.
func (l *login) next(auth *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	d := l.dialing
	l.methods, l.partial = auth.AllowedMethods, len(auth.PartialSuccessMethods) > 0
	l.answered = d.offered
	if !slices.Contains(l.methods, "publickey") || d.offered == len(d.ids.offers) {
		return nil, nil
	}
	d.offered++
	return ssh.PublicKeys(d.ids.offers[d.offered-1].signer), nil
}

// hostCheck applies trust in the library's callback, which runs in a goroutine of its own (and
// again whenever the keys are exchanged anew).
type hostCheck struct {
	trust    *trust
	mu       sync.Mutex
	rejected *Error
	trusted  bool
}

func (h *hostCheck) callback(_ string, _ net.Addr, key ssh.PublicKey) error {
	rejected := h.trust.check(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rejected, h.trusted = rejected, rejected == nil
	if rejected != nil {
		return rejected
	}
	return nil
}

func (h *hostCheck) result() (rejected *Error, trusted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rejected, h.trusted
}
