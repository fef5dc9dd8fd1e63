package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// maxFailure bounds, in bytes, the body of a failed answer that is read.
const maxFailure = 64 << 10

// connection is a running agent.
type connection struct {
	host     string
	session  *session
	http     *http.ClientConn
	readOnly bool

	facts      ahead[agent.Facts]
	containers ahead[agent.EngineAnswers]
	asked      agent.ContainersRequest // what containers answers
}

var _ agent.Agent = (*connection)(nil)

// connected is the outcome of connectBehind.
type connected struct {
	*connection
	err error
}

// connectBehind takes up HTTP/2 on the session's streams and asks what the options say, all without
// waiting for the node. Nothing is read before the gate is open.
func (s *session) connectBehind(ctx context.Context, host string, gate *gate, options Options) <-chan connected {
	made := make(chan connected, 1)
	go func() {
		c, err := connect(ctx, host, s, gate)
		if err == nil {
			c.askAhead(context.WithoutCancel(ctx), options)
		}
		made <- connected{c, err}
	}()
	return made
}

func connect(ctx context.Context, host string, s *session, reader io.Reader) (*connection, error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:          &protocols,
		DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return wire.Conn(stream{reader, s.process.Stdin, s.close}), nil
		},
		// A peer that does not answer within 45 s is gone, whatever the layers below still believe.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	client, err := transport.NewClientConn(ctx, "http", "agent:80")
	if err != nil {
		return nil, fmt.Errorf("speak HTTP/2 with the agent: %w", err)
	}
	return &connection{host: host, session: s, http: client}, nil
}

// askAhead asks what will be wanted first. The answers are bounded as those of the calls are.
func (c *connection) askAhead(ctx context.Context, options Options) {
	if options.Facts {
		c.facts.ask(func() (agent.Facts, error) { return c.readFacts(ctx) })
	}
	if options.Containers != nil {
		c.asked = *options.Containers
		c.containers.ask(func() (agent.EngineAnswers, error) { return c.readContainers(ctx, *options.Containers) })
	}
}

// stream joins the session's two directions.
type stream struct {
	io.Reader
	io.Writer
	close func() error
}

func (s stream) Close() error { return s.close() }

// Done implements agent.Agent.
func (c *connection) Done() <-chan struct{} { return c.session.ended }

// ReadOnly implements agent.Agent.
func (c *connection) ReadOnly() bool { return c.readOnly }

// Forget implements agent.Agent.
func (c *connection) Forget() {
	c.facts.drop()
	c.containers.drop()
}

// Close implements agent.Agent.
func (c *connection) Close() error {
	// The HTTP connection has nothing to flush; its own close would only close the session too.
	if err := c.session.close(); err != nil {
		return c.fail("close", err)
	}
	return nil
}

func (c *connection) fail(step string, err error) *agent.Error {
	return &agent.Error{Host: c.host, Step: step, Err: err}
}

// post sends a request and gives the answer's body, which the caller closes. It fails for every
// status but 200.
func (c *connection) post(ctx context.Context, step, path string, body any) (io.ReadCloser, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, c.fail(step, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, bytes.NewReader(text))
	if err != nil {
		return nil, c.fail(step, err)
	}
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return nil, c.broken(ctx, step, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	return nil, c.failure(step, response)
}

// failure reads why the agent did not do what it was asked, and closes the answer.
func (c *connection) failure(step string, response *http.Response) *agent.Error {
	defer response.Body.Close() //nolint:errcheck // Nothing of it is used after the failure is read.
	if code := response.Header.Get(wire.HeaderFailure); code != "" && response.Request != nil && response.Request.Method == http.MethodHead {
		return &agent.Error{Host: c.host, Step: step, Code: code, Message: "the agent does not pass it on: " + code}
	}
	var failure wire.Failure
	if err := json.NewDecoder(io.LimitReader(response.Body, maxFailure)).Decode(&failure); err != nil {
		return c.fail(step, fmt.Errorf("status %d without a readable reason: %w", response.StatusCode, err))
	}
	return &agent.Error{Host: c.host, Step: step, Code: failure.Code, Message: failure.Message}
}

// broken explains a connection that failed under a call: by the caller's own context, by the end
// of the agent, or by the transport.
func (c *connection) broken(ctx context.Context, step string, err error) *agent.Error {
	if ctx.Err() != nil {
		return c.fail(step, context.Cause(ctx))
	}
	select {
	case <-c.session.ended:
	case <-time.After(200 * time.Millisecond):
		return c.fail(step, err)
	}
	err = fmt.Errorf("the agent ended (exit code %d): %w", c.session.code, err)
	if line := lastLine(c.session.process.Stderr()); line != "" {
		err = fmt.Errorf("%w; it said: %s", err, line)
	}
	return c.fail(step, err)
}

// ask makes a call with one answer.
func (c *connection) ask(ctx context.Context, step, path string, body, answer any) error {
	reader, err := c.post(ctx, step, path, body)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // It has been read to its end, or failed.
	if err := json.NewDecoder(&bounded{reader, maxAnswer}).Decode(answer); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return c.broken(ctx, step, fmt.Errorf("read the answer: %w", err))
	}
	return nil
}
