package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// flood is a reader without an end, but for the safety of the machine that tests.
type flood struct{ left int }

func (f *flood) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), f.left)
	f.left -= n
	for i := range p[:n] {
		p[i] = 'a'
	}
	return n, nil
}

// A node answers without an end: what is read of it is bounded.
func TestEndlessAnswer(t *testing.T) {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	const limit = maxAnswer + 4<<20
	web := &http.Server{Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathList {
			_, _ = io.WriteString(w, `{"folder":"`)
		}
		_, _ = io.Copy(w, &flood{limit}) // The client ends it.
	})}
	web.Protocols.SetUnencryptedHTTP2(true)
	go func() {
		line, _ := wire.Hello{Protocol: agent.ProtocolVersion, Architecture: "arm64"}.Line()
		_, _ = io.WriteString(far, line)
		_ = web.Serve(&single{conn: far})
	}()
	c, err := Start(t.Context(), "spark-a", StarterFunc(func(context.Context, string) (*Process, error) {
		return &Process{Stdin: near, Stdout: bufio.NewReader(near), Stderr: func() string { return "" }, Wait: func() (int, error) { return 0, nil }, Close: near.Close}, nil
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.List(t.Context(), agent.ListRequest{Folder: "/models"}); err == nil || !strings.Contains(err.Error(), "more than 128 MiB") {
		t.Errorf("the listing: %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://docker.invalid/containers/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.AskEngine("/var/run/docker.sock", request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if read, err := io.Copy(io.Discard, response.Body); read > maxAnswer || err == nil || !strings.Contains(err.Error(), "more than 128 MiB") {
		t.Errorf("of the engine %d bytes were read: %v", read, err)
	}
}

// single is a listener with one connection.
type single struct{ conn net.Conn }

func (s *single) Accept() (net.Conn, error) {
	if s.conn == nil {
		return nil, io.EOF // What was accepted is served on.
	}
	conn := s.conn
	s.conn = nil
	return conn, nil
}
func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{} }
