package fleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// What a plan reads goes through the agent, whatever the session may do: then every plan takes the way
// that is left to a key that may only look. Acts have channels of their own.

// engineReader answers reads of the engine: at first from what one look found, then through the agent.
// It is an http.RoundTripper for the engine's client.
type engineReader struct {
	helper agent.Agent
	socket string
	// found are the answers by path without the API version. failed is why there are none.
	found  map[string]agent.EngineAnswer
	failed error
}

// reader looks at the engine once and gives the client that reads from there.
func (m *machine) reader(ctx context.Context) (engine.Engine, error) {
	helper, err := m.Agent(ctx)
	if err != nil {
		return nil, err
	}
	reads := &engineReader{helper: helper, socket: m.connection.Socket, found: map[string]agent.EngineAnswer{}}
	answers, failed := helper.Containers(ctx, m.containersRequest())
	for _, answer := range answers.Answers {
		// What is missing may appear; the engine is asked for it again.
		if answer.Status == http.StatusOK || !strings.HasPrefix(answer.Path, "/images/") {
			reads.found[answer.Path] = answer
		}
	}
	reads.failed = failed
	client, err := engine.New(m.connection.Host, nil, m.connection.Socket, engine.WithTransport(reads))
	if err != nil {
		return nil, err
	}
	_, err = client.Version(ctx) // It classes the failure, and costs nothing.
	return client, err
}

func (m *machine) containersRequest() agent.ContainersRequest {
	return agent.ContainersRequest{Socket: m.connection.Socket, API: engine.MaximumAPIVersion}
}

// RoundTrip implements http.RoundTripper.
func (r *engineReader) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.failed != nil {
		return nil, refusedThere(r.failed)
	}
	target := request.URL.RequestURI()
	if asked, err := filter.Engine(request.Method, target); err == nil {
		if answer, known := r.found[asked.Bare()]; known {
			return response(request, answer), nil
		}
	}
	answer, err := r.helper.AskEngine(r.socket, request)
	if err != nil {
		return nil, refusedThere(err)
	}
	return answer, nil
}

// response dresses an answer that is there already.
func response(request *http.Request, answer agent.EngineAnswer) *http.Response {
	header := http.Header{}
	for name, value := range answer.Header {
		header.Set(name, value)
	}
	return &http.Response{
		Status: http.StatusText(answer.Status), StatusCode: answer.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: request,
		ContentLength: int64(len(answer.Body)), Body: io.NopCloser(bytes.NewReader(answer.Body)),
	}
}

// unopened is the agent's word on an engine that it did not reach.
type unopened struct{ cause *agent.Error }

// Error implements error.
func (u *unopened) Error() string {
	if u.cause.Message != "" {
		return u.cause.Message
	}
	return u.cause.Error()
}

// Unwrap gives the agent's error.
func (u *unopened) Unwrap() error { return u.cause }

// RefusedThere implements engine.RefusedThere.
func (u *unopened) RefusedThere() bool { return u.cause.Code == agent.RefusedEngineDown }

// Is says that the user may not use the socket, in the words of package os.
func (u *unopened) Is(target error) bool {
	return target == os.ErrPermission && u.cause.Code == agent.RefusedEngineDenied
}

// unasked is the agent's word on a question that it does not pass on: the connection is well.
type unasked struct{ cause *agent.Error }

// Error implements error.
func (u *unasked) Error() string { return u.cause.Message }

// Unwrap gives the agent's error.
func (u *unasked) Unwrap() error { return u.cause }

// Advice is the next step.
func (u *unasked) Advice() string {
	return `The agent did not ask the engine, and nothing was changed. What it passes on, and what a line in authorized_keys has to name, is in the guide "Drift in CI".`
}

// refusedThere lets the engine's client class what the agent said of the engine.
func refusedThere(err error) error {
	var helper *agent.Error
	if !errors.As(err, &helper) {
		return err
	}
	switch helper.Code {
	case agent.RefusedEngineDown, agent.RefusedEngineDenied:
		return &unopened{helper}
	case agent.RefusedFilter:
		return &unasked{helper}
	}
	return err
}

// programs asks programs on the machine: reads through the agent, all else over channels of SSH. It is
// an http.RoundTripper.
type programs struct {
	machine *machine
	// http and grpc are past the agent.
	http, grpc *http.Transport
}

func newPrograms(m *machine) *programs {
	past := func() *http.Transport {
		return &http.Transport{DialContext: m.DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: programIdle, DisableCompression: true}
	}
	p := &programs{m, past(), past()}
	p.grpc.Protocols = new(http.Protocols)
	p.grpc.Protocols.SetUnencryptedHTTP2(true)
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *programs) RoundTrip(request *http.Request) (*http.Response, error) {
	protocol, err := filter.Program(request.Method, request.URL.RequestURI())
	// The agent hands no key on to a server, so that no read can need one.
	if err == nil && protocol == filter.HTTP && request.Header.Get("Authorization") != "" {
		return p.http.RoundTrip(request)
	}
	if err != nil {
		if request.Header.Get("Content-Type") == "application/grpc" {
			return p.grpc.RoundTrip(request)
		}
		return p.http.RoundTrip(request)
	}
	helper, err := p.machine.Agent(request.Context())
	if err != nil {
		return nil, err
	}
	return helper.AskProgram(request.URL.Host, request)
}
