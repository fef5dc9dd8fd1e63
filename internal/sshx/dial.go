package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	defaultPort    = 22
	defaultTimeout = 10 * time.Second
	// offersPerConnection keeps below sshd's MaxAuthTries, which is 6: an agent with many keys goes
	// on with the next ones on a new connection.
	offersPerConnection = 5
)

// Dial connects to the machine, checks its host key and logs in. It does not try again: when and
// how often is the caller's decision. Every error is an [Error].
func Dial(ctx context.Context, config Config) (Client, error) {
	c, err := dial(ctx, config, liveness{interval: keepaliveInterval, patience: keepalivePatience})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dialing is one attempt to connect, with all that was resolved from the Config.
type dialing struct {
	config  Config
	host    string
	port    int
	user    string
	timeout time.Duration
	trust   *trust
	ids     *identities
}

func dial(ctx context.Context, config Config, live liveness) (*client, error) {
	d := &dialing{config: config, host: config.Host, port: config.Port, user: config.User, timeout: config.Timeout}
	if d.port == 0 {
		d.port = defaultPort
	}
	if d.timeout == 0 {
		d.timeout = defaultTimeout
	}
	if err := d.resolveUser(); err != nil {
		return nil, d.fail(Other, stepPrepare, err)
	}
	bounded, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var err error
	if d.trust, err = newTrust(config, net.JoinHostPort(d.host, strconv.Itoa(d.port))); err != nil {
		return nil, d.fail(Other, stepPrepare, err)
	}
	if d.ids, err = loadIdentities(bounded, config); err != nil {
		return nil, d.fail(NoKey, stepPrepare, err)
	}
	defer d.ids.close()
	if len(d.ids.offers) == 0 {
		return nil, d.fail(NoKey, stepPrepare, nil)
	}
	c, failure := d.connect(ctx, bounded)
	if failure != nil {
		return nil, failure
	}
	c.start(live)
	return c, nil
}

// connect makes as many connections as the keys need: usually one. It goes on with further keys
// when sshd would cut an agent's many keys short, and, for a pinned fingerprint (which does not
// tell the key's type), with the host's keys of other types.
func (d *dialing) connect(caller, bounded context.Context) (*client, *Error) {
	batches := slices.Collect(slices.Chunk(d.ids.offers, offersPerConnection))
	algorithms := d.trust.algorithms()
	var offered []string
	var changed *Error
	for {
		c, failure := d.handshake(caller, bounded, batches[0], algorithms)
		if failure == nil {
			return c, nil
		}
		var negotiation *ssh.AlgorithmNegotiationError
		switch {
		case failure.Kind == AuthFailed && !failure.Partial && len(batches) > 1:
			batches = batches[1:]
			continue
		case failure.Kind == ChangedHostKey && d.trust.fingerprint != "":
			keyType, _, _ := strings.Cut(failure.Offered, " ")
			algorithms = slices.DeleteFunc(algorithms, func(a string) bool { return slices.Contains(algorithmsOf(keyType), a) })
			offered = append(offered, failure.Offered)
			failure.Offered = strings.Join(offered, " and ")
			changed = failure
			if len(algorithms) > 0 {
				continue
			}
		case changed != nil && errors.As(failure, &negotiation):
			return nil, changed // the host has no more keys to show
		}
		return nil, failure
	}
}

// handshake makes one connection. The context ends it at any point, since closing the TCP
// connection wakes whatever waits on it; ssh.ClientConfig.Timeout would cover the TCP part alone.
func (d *dialing) handshake(caller, bounded context.Context, offers []identity, algorithms []string) (*client, *Error) {
	target := net.JoinHostPort(d.host, strconv.Itoa(d.port))
	dialContext := d.config.Dialer
	if dialContext == nil {
		dialContext = new(net.Dialer).DialContext
	}
	raw, err := dialContext(bounded, "tcp", target)
	if err != nil {
		if bounded.Err() != nil {
			return nil, d.interrupted(caller, stepDial)
		}
		var through *Error
		if errors.As(err, &through) {
			return nil, through // the jump host's own failure, which names it
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
	var methods []string
	var partial bool
	config := &ssh.ClientConfig{
		User:              d.user,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback:   host.callback,
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			signers := make([]ssh.Signer, 0, len(offers))
			for _, offer := range offers {
				signers = append(signers, offer.signer)
			}
			return signers, nil
		})},
		AuthCallback: func(auth *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			methods, partial = auth.AllowedMethods, len(auth.PartialSuccessMethods) > 0
			return nil, nil // no opinion: go on with Auth
		},
	}
	conn, channels, requests, err := ssh.NewClientConn(w, target, config)
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
		rejected.Host, rejected.Port, rejected.User, rejected.Step = d.host, d.port, d.user, stepHandshake
		return nil, rejected
	}
	heard := w.head()
	foreign := heard != "" && !strings.Contains(heard, "SSH-")
	if bounded.Err() != nil && (caller.Err() != nil || !foreign) {
		step := stepHandshake
		if trusted {
			step = stepAuth
		}
		return nil, d.interrupted(caller, step)
	}
	kind, step := handshakeKind(err, trusted)
	if foreign {
		err = fmt.Errorf("it answered %q: %w", heard, err)
	}
	failure := d.fail(kind, step, err)
	failure.Methods, failure.Partial = methods, partial
	return nil, failure
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

// interrupted tells the caller's own cancellation from our deadline.
func (d *dialing) interrupted(caller context.Context, step string) *Error {
	if caller.Err() != nil {
		return d.fail(interruptedKind(caller), step, context.Cause(caller))
	}
	return d.fail(TimedOut, step, fmt.Errorf("no answer within %s: %w", d.timeout, os.ErrDeadlineExceeded))
}

func (d *dialing) fail(kind Kind, step string, err error) *Error {
	e := &Error{Kind: kind, Host: d.host, Port: d.port, User: d.user, Step: step, Err: err}
	if d.ids != nil && (kind == AuthFailed || kind == NoKey) {
		for _, offer := range d.ids.offers {
			e.Tried = append(e.Tried, offer.label)
		}
		e.Tried = append(e.Tried, d.ids.skipped...)
	}
	return e
}

// resolveUser fills in the local user's name.
func (d *dialing) resolveUser() error {
	if d.host == "" {
		return errors.New("no host was given")
	}
	if d.user != "" {
		return nil
	}
	current, err := user.Current()
	if err != nil {
		return fmt.Errorf("finding the local user: %w", err)
	}
	// Windows says "DOMAIN\user".
	d.user = current.Username[strings.LastIndex(current.Username, `\`)+1:]
	return nil
}
