package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

const (
	// dialTimeout bounds a connection to a program of this node.
	dialTimeout = 5 * time.Second
	// idleTimeout closes connections between the phases of an apply.
	idleTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes: 1000 dead nodes, which is all that a GCS
	// keeps, are about 1 MB.
	maxAnswer = 32 << 20
)

// refusal is a question that was not passed on, or not answered, with its class.
type refusal struct {
	code string
	err  error
}

// Error implements error.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap gives the cause.
func (r *refusal) Unwrap() error { return r.err }

// lines are the connections to what questions are passed on to.
type lines struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	mutex   sync.Mutex
	engines map[string]*http.Transport
	http    *http.Transport
	grpc    *http.Transport
}

func newLines(options Options) *lines {
	l := &lines{dial: options.Dial, engines: map[string]*http.Transport{}}
	if l.dial == nil {
		l.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	l.http, l.grpc = l.transport(nil), l.transport(nil)
	l.grpc.Protocols = new(http.Protocols)
	l.grpc.Protocols.SetUnencryptedHTTP2(true)
	return l
}

// unconnected is a connection that was not opened.
type unconnected struct{ error }

// Unwrap gives the cause.
func (u unconnected) Unwrap() error { return u.error }

// transport has no proxy: its answers are this node's own. With a socket every connection goes there.
func (l *lines) transport(socket *string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if socket != nil {
				network, address = "unix", *socket
			}
			conn, err := l.dial(ctx, network, address)
			if err != nil {
				return nil, unconnected{err}
			}
			return conn, nil
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: maxParallel,
		IdleConnTimeout:     idleTimeout,
	}
}

// engine is the transport to an engine's socket.
func (l *lines) engine(socket string) *http.Transport {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.engines[socket] == nil {
		l.engines[socket] = l.transport(&socket)
	}
	return l.engines[socket]
}

// close gives the idle connections back.
func (l *lines) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, one := range l.engines {
		one.CloseIdleConnections()
	}
	l.http.CloseIdleConnections()
	l.grpc.CloseIdleConnections()
}

// passed is an answer that was passed on, whole.
type passed struct {
	status  int
	header  map[string]string
	body    []byte
	trailer map[string]string
}

// ask sends a request and reads the answer whole. Of its headers and trailers only those named are kept.
func ask(transport http.RoundTripper, request *http.Request, keep ...string) (passed, error) {
	response, err := transport.RoundTrip(request)
	if err != nil {
		return passed{}, err
	}
	defer response.Body.Close() //nolint:errcheck // It has been read to its end, or failed.
	answer := passed{status: response.StatusCode, header: map[string]string{}, trailer: map[string]string{}}
	if answer.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1)); err != nil {
		return passed{}, fmt.Errorf("read the answer: %w", err)
	}
	if len(answer.body) > maxAnswer {
		return passed{}, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	for _, name := range keep {
		if value := response.Header.Get(name); value != "" {
			answer.header[name] = value
		}
		if value := response.Trailer.Get(name); value != "" {
			answer.trailer[name] = value
		}
	}
	return answer, nil
}

// write answers with what was passed on.
func (p passed) write(w http.ResponseWriter) {
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	for name, value := range p.trailer {
		w.Header().Set(http.TrailerPrefix+name, value)
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // A failed write is a client that is gone; nobody is left to tell.
}

// pass answers a question that is passed on; rest is the target without the prefix.
func pass(w http.ResponseWriter, r *http.Request, prefix string, on func(r *http.Request, rest string) (passed, error)) {
	answer, err := on(r, strings.TrimPrefix(r.RequestURI, prefix))
	if err != nil {
		w.Header().Set(wire.HeaderFailure, cmp.Or(describe(err).Code, "failed"))
		fail(w, http.StatusBadGateway, err)
		return
	}
	answer.write(w)
}

// broken classes the failure of a question to a program.
func broken(err error, unopened string) error {
	var failed unconnected
	if errors.As(err, &failed) {
		return &refusal{code: agent.RefusedConnect, err: fmt.Errorf("%s: %w", unopened, failed.error)}
	}
	return &refusal{code: agent.RefusedBroken, err: err}
}
