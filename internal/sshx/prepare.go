package sshx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// dialing is one attempt to connect, with all that was resolved from the Config.
type dialing struct {
	config   Config
	host     string // as the user wrote it
	address  string // what is dialled: HostName of ssh_config, or the host
	port     int
	user     string
	timeout  time.Duration
	network  string // "tcp", "tcp4" or "tcp6"
	way      way
	trust    *trust
	ids      *identities
	offered  int // how many of the keys the host has seen
	warnings []string
	// arrive, if there are jump hosts, reaches the last of them; release gives it back. open makes the
	// connection that SSH runs over.
	arrive  func(context.Context) *Error
	release func()
	open    func(context.Context) (net.Conn, error)
}

// way is where a dialling stands on its way over jump hosts.
type way struct {
	// hop says that the host is a jump host: then other keys than that of the Config are offered too.
	hop bool
	// behind are the jump hosts that wait for this one, by the keys that Shared knows them by.
	behind []string
}

// prepare resolves all that needs no connection to the host.
func (d *dialing) prepare(ctx context.Context) *Error {
	config := d.config
	if d.host == "" {
		return d.fail(BadSettings, stepPrepare, errors.New("no host was given"))
	}
	jumps, direct, err := parseJumps(config.ProxyJump)
	if err != nil {
		return d.fail(BadSettings, stepPrepare, err)
	}
	found, warnings, err := resolve(ctx, query{config.Host, config.User, config.Port}, config.ConfigFile)
	d.warnings = append(d.warnings, warnings...)
	if err != nil {
		return d.fail(BadSettings, stepPrepare, err)
	}
	d.port = cmp.Or(config.Port, found.port, defaultPort)
	if d.user = cmp.Or(config.User, found.user, localUser()); d.user == "" {
		return d.fail(BadSettings, stepPrepare, errors.New("no user was given, and the local user has no name"))
	}
	names := newTokens(d.host, d.host, d.port, d.user, found.hostKeyAlias)
	if found.hostName != "" {
		if d.address, err = names.expand(found.hostName, false); err != nil {
			return d.fail(BadSettings, stepPrepare, fmt.Errorf("HostName of ssh_config: %w", err))
		}
	}
	names['h'] = d.address
	switch strings.ToLower(found.addressFamily) {
	case "inet":
		d.network = "tcp4"
	case "inet6":
		d.network = "tcp6"
	}
	if d.trust, err = newTrust(config, found, d.address, d.port, names); err != nil {
		return d.fail(BadSettings, stepPrepare, err)
	}
	if d.trust.policy == HostKeyOff && d.config.HostKey == "" {
		d.warnings = append(d.warnings, fmt.Sprintf(
			"The host key of %s is not checked, as its policy is %q: whoever answers at %s can read and change what is sent. Pin the key, or trust it in known_hosts.",
			d.host, HostKeyOff, d.target()))
	}
	if d.ids, err = loadIdentities(ctx, config, found, names, d.way.hop); err != nil {
		kind := KeyUnreadable
		var problem *keyProblem
		if errors.As(err, &problem) {
			kind = problem.kind
		}
		return d.fail(kind, stepPrepare, err)
	}
	if len(d.ids.offers) == 0 {
		return d.fail(d.ids.kind, stepPrepare, nil)
	}
	return d.route(found, jumps, direct, names)
}

// route chooses how the connection is opened: by the Config's dialer, its jump hosts, what ssh_config says, or
// directly.
func (d *dialing) route(found settings, jumps []jumpHost, direct bool, names tokens) *Error {
	if d.config.Dialer == nil && len(jumps) == 0 && !direct {
		var err error
		list, expandErr := names.expand(found.proxyJump, false)
		if jumps, _, err = parseJumps([]string{list}); err != nil || expandErr != nil {
			return d.fail(BadSettings, stepPrepare, fmt.Errorf("ProxyJump of ssh_config: %w", errors.Join(expandErr, err)))
		}
		if command := found.proxyCommand; len(jumps) == 0 && command != "" && !strings.EqualFold(command, "none") {
			line, err := names.expand(command, false)
			if unsafe := strings.IndexFunc(d.address+d.host+d.user, isShellCharacter); unsafe >= 0 && err == nil {
				err = errors.New("the host or user has characters that mean something to a shell, so it is not put into a command")
			}
			if err != nil {
				return d.fail(BadSettings, stepPrepare, fmt.Errorf("ProxyCommand of ssh_config: %w", err))
			}
			d.open = func(ctx context.Context) (net.Conn, error) { return d.proxyCommand(ctx, line) }
			return nil
		}
	}
	switch {
	case d.config.Dialer != nil:
		d.open = func(ctx context.Context) (net.Conn, error) { return d.config.Dialer(ctx, d.network, d.target()) }
	case len(jumps) > 0:
		d.over(jumps)
	default:
		d.open = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, d.network, d.target())
		}
	}
	return nil
}

// isShellCharacter says that a character may end a word or begin a command of a shell; ssh refuses them too.
func isShellCharacter(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune("'`\"$\\;&<>|(){}*?!#~", r)
}

// target is the address to dial, with the port.
func (d *dialing) target() string { return net.JoinHostPort(d.address, strconv.Itoa(d.port)) }

// interrupted tells the caller's own cancellation from our deadline.
func (d *dialing) interrupted(caller context.Context, step string) *Error {
	if caller.Err() != nil {
		return d.fail(interruptedKind(caller), step, context.Cause(caller))
	}
	return d.fail(TimedOut, step, errTimeout(d.timeout))
}

// locate says of a failure where it was and in which step.
func (d *dialing) locate(e *Error, step string) *Error {
	e.Host, e.Port, e.User, e.Step = d.host, d.port, d.user, step
	if d.address != d.host {
		e.Address = d.address
	}
	return e
}

func (d *dialing) fail(kind Kind, step string, err error) *Error {
	e := d.locate(&Error{Kind: kind, Err: err}, step)
	if d.trust != nil {
		e.Name = d.trust.name
	}
	if d.ids != nil && (kind == AuthFailed || kind == BadCertificate || kind == d.ids.kind) {
		for _, offer := range d.ids.offers {
			e.Tried = append(e.Tried, offer.label)
		}
		e.Tried = append(e.Tried, d.ids.skipped...)
	}
	return e
}
