package engine

import (
	"net/http"
	"net/http/httptrace"

	"github.com/moby/moby/client"
)

// MaximumAPIVersion is the highest version of Docker's API that we speak.
const MaximumAPIVersion = client.MaxAPIVersion

// WithTransport sends every request over another transport than connections of the Dialer's, which is
// then not used: for a client that only reads. A failure of the transport counts as a socket that
// could not be opened; its errors may implement RefusedThere.
func WithTransport(transport http.RoundTripper) Option {
	return func(d *docker) { d.over = over{transport} }
}

// over keeps the library from explaining the transport's failures in its own way.
type over struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o over) RoundTrip(request *http.Request) (*http.Response, error) {
	// Whoever waits for the answer is to know that it is the engine that is silent.
	if trace := httptrace.ContextClientTrace(request.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	response, err := o.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, &dialError{err}
	}
	return response, nil
}
