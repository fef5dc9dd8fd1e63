package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/moby/moby/client"
)

const (
	// maxParallel bounds the requests that one call has under way; as many idle connections are kept.
	maxParallel = 8
	// idleTimeout gives unused channels back between the phases of an apply.
	idleTimeout = 60 * time.Second
	// diagnoseTimeout bounds the look at why the socket could not be opened.
	diagnoseTimeout = 10 * time.Second
)

// Dialer opens a connection as seen from the machine. Its errors may implement RefusedThere.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Diagnose says why the engine's socket could not be opened: Down or Denied with a sentence, or
// Failed when it cannot tell.
type Diagnose func(ctx context.Context) (Kind, string)

// Option changes how New builds an Engine.
type Option func(*docker)

// WithDiagnose asks for a closer look when the machine is connected but the socket is not.
func WithDiagnose(diagnose Diagnose) Option {
	return func(d *docker) { d.diagnose = diagnose }
}

// docker implements Engine.
type docker struct {
	host     string
	socket   string
	dial     Dialer
	over     http.RoundTripper // in place of connections by dial
	diagnose Diagnose
	api      *client.Client

	// patience is what an answer may take that comes at once: answerTimeout.
	patience time.Duration

	// turn lets one caller at a time negotiate; a channel, so that the others obey their context.
	turn       chan struct{}
	negotiated *Version

	mu      sync.Mutex
	product string // from the Server header, "Docker"
	server  string // from there too, "28.3.3"
	podman  string // Podman's release, from a header that only Podman sends
}

// New makes an engine client for the socket of the machine host, reached through dial. Nothing is
// sent until the first call.
func New(host string, dial func(ctx context.Context, network, address string) (net.Conn, error), socket string, options ...Option) (Engine, error) {
	if socket == "" {
		socket = DefaultSocket
	}
	if err := CheckSocket(socket); err != nil {
		var wrong *Error
		if errors.As(err, &wrong) {
			wrong.Host = host
		}
		return nil, err
	}
	d := &docker{host: host, socket: socket, dial: dial, patience: answerTimeout, turn: make(chan struct{}, 1)}
	for _, option := range options {
		option(d)
	}
	// The order matters: WithHost resets a transport's dialer, so that ours must come after it. The
	// name is only for the Host header.
	api, err := client.New(
		client.WithHost("http://docker.invalid"),
		client.WithHTTPClient(&http.Client{Transport: d.transport(), CheckRedirect: client.CheckRedirect}),
		client.WithHTTPResponseHook(d.noteServer),
	)
	if err != nil {
		return nil, &Error{Host: host, Step: "prepare the engine client", Err: err}
	}
	d.api = api
	return d, nil
}

// transport is our own, without a proxy: with HTTP_PROXY set, the library's would send the proxy's
// credentials to the engine. It repeats requests that are safe to repeat (GET, HEAD) on its own when
// an idle connection turns out to be broken, and no others.
func (d *docker) transport() http.RoundTripper {
	if d.over != nil {
		return d.over
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := d.dial(ctx, "unix", d.socket)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},
		MaxIdleConns:        maxParallel,
		MaxIdleConnsPerHost: maxParallel,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true,
	}
}

// ready negotiates before the first call of any kind.
func (d *docker) ready(ctx context.Context) error {
	_, err := d.Version(ctx)
	return err
}

// Close implements Engine.
func (d *docker) Close() error { return d.api.Close() }

// dialError hides its cause from the library, which would replace what it believes to know (a
// refused connection, a timeout) by a sentence of its own and drop the cause.
type dialError struct{ cause error }

// Error implements error.
func (*dialError) Error() string { return "the engine's socket could not be opened" }

// asDialError finds the cause of a connection that was not opened.
func asDialError(err error) (error, bool) {
	var failed *dialError
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.cause, true
}
