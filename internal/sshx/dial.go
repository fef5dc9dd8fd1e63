package sshx

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	defaultPort    = 22
	defaultTimeout = 10 * time.Second
	// A host that closes the connection before SSH begins is asked again after these pauses: sshd beyond
	// its MaxStartups drops connections at random, so the pauses are random too.
	busyPauseFirst = 20 * time.Millisecond
	busyPauseLast  = 500 * time.Millisecond
)

// Dial connects to the machine, checks its host key and logs in. It tries again only where the host is
// busy with other logins, within the time-out: all else is the caller's decision. Every error is an [Error].
func Dial(ctx context.Context, config Config) (Client, error) {
	c, failure := dial(ctx, config, liveness{interval: keepaliveInterval, patience: keepalivePatience}, way{})
	if failure != nil {
		return nil, failure
	}
	return c, nil
}

func dial(ctx context.Context, config Config, live liveness, at way) (*client, *Error) {
	d := &dialing{
		config: config, host: config.Host, address: config.Host, port: config.Port, user: config.User,
		timeout: config.Timeout, network: "tcp", way: at, release: func() {},
	}
	if d.timeout == 0 {
		d.timeout = defaultTimeout
	}
	failure := d.prepareInTime(ctx)
	if d.ids != nil {
		defer d.ids.close()
	}
	if failure == nil && d.arrive != nil {
		failure = d.arrive(ctx) // each host on the way has its own time
	}
	if failure != nil {
		return nil, failure
	}
	bounded, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, failure := d.connect(ctx, bounded)
	if failure != nil {
		d.release()
		return nil, failure
	}
	c.start(live)
	return c, nil
}

func (d *dialing) prepareInTime(ctx context.Context) *Error {
	bounded, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	failure := d.prepare(bounded)
	if failure != nil && ctx.Err() != nil {
		return d.interrupted(ctx, stepPrepare)
	}
	return failure // where our own time is over, it names who did not answer: the agent, or ssh -G
}

// connect makes as many connections as it needs: usually one. It goes on with further keys when sshd cuts
// an agent's many keys short (MaxAuthTries); for a pinned fingerprint, which does not tell the key's type, with
// the host's keys of other types; and it waits for its turn where the host has too many logins at once.
func (d *dialing) connect(caller, bounded context.Context) (*client, *Error) {
	algorithms := d.trust.algorithms()
	var offered []string
	var changed, busy *Error
	pause := busyPauseFirst
	for attempt := 1; ; attempt++ {
		seen := d.offered
		c, failure := d.handshake(caller, bounded, algorithms)
		if failure == nil {
			return c, nil
		}
		var negotiation *ssh.AlgorithmNegotiationError
		switch {
		case failure.Kind == Busy:
			busy = failure
			busy.Err = fmt.Errorf("tried %d times: %w", attempt, failure.Err)
			if !sleep(bounded, pause/2+rand.N(pause)) { //nolint:gosec // jitter is no secret
				break
			}
			pause = min(2*pause, busyPauseLast)
			continue
		case failure.Kind == AuthFailed && !failure.Partial && d.offered > seen && d.offered < len(d.ids.offers):
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
		switch {
		case caller.Err() != nil:
			return nil, d.interrupted(caller, failure.Step)
		case busy != nil && (bounded.Err() != nil || failure.Kind == TimedOut):
			return nil, busy
		case failure.Kind == AuthFailed:
			if fault := certificateFault(d.ids.offers, d.user, time.Now()); fault != nil {
				failure.Kind, failure.Err = BadCertificate, fmt.Errorf("%w: %w", fault, failure.Err)
			}
		}
		return nil, failure
	}
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func errTimeout(timeout time.Duration) error {
	return fmt.Errorf("no answer within %s: %w", timeout, os.ErrDeadlineExceeded)
}
