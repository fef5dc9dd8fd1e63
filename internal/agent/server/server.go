package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/facts"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// Serve greets and answers calls until the stream ends, in either direction, or ctx does. When it
// returns without an error, every call has ended and nothing of it is left: no listener, no copy, no process.
func Serve(ctx context.Context, stream io.ReadWriteCloser, options Options) error {
	s := &server{options: options, lines: newLines(options)}
	defer s.lines.close()
	line, err := wire.Hello{Protocol: agent.ProtocolVersion, Architecture: options.architecture(), ReadOnly: options.ReadOnly}.Line()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	if _, err := io.WriteString(stream, line); err != nil {
		return errors.Join(err, stream.Close())
	}
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	listener := &once{stream: stream, ended: make(chan struct{})}
	web := &http.Server{
		Handler:   s.handler(),
		Protocols: &protocols,
		// A client that answers no ping for 45 s is gone, whatever sshd still believes: the agent
		// of a laptop that was shut must not stay.
		HTTP2:             &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		ReadHeaderTimeout: 0, // The stream is the client's own; it may be idle for hours.
		ErrorLog:          log.New(options.log(), "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	err = web.Serve(listener)
	cancel()
	stuck := s.leave()
	if errors.Is(err, errEnded) {
		err = context.Cause(parent)
	}
	return errors.Join(err, stuck)
}

// errEnded is the listener's answer once its only connection has ended.
var errEnded = errors.New("the session ended")

// once is a listener with one connection, the stream.
type once struct {
	stream io.ReadWriteCloser
	ended  chan struct{}
	taken  bool
	close  sync.Once
}

// Accept implements net.Listener.
func (o *once) Accept() (net.Conn, error) {
	if !o.taken {
		o.taken = true
		return wire.Conn(closing{o.stream, o.end}), nil
	}
	<-o.ended
	return nil, errEnded
}

func (o *once) end() { o.close.Do(func() { close(o.ended) }) }

// Close implements net.Listener.
func (o *once) Close() error { return nil }

// Addr implements net.Listener.
func (o *once) Addr() net.Addr { return wire.Conn(o.stream).LocalAddr() }

// closing tells when the stream is closed.
type closing struct {
	io.ReadWriteCloser
	closed func()
}

// Close implements io.Closer.
func (c closing) Close() error {
	defer c.closed()
	return c.ReadWriteCloser.Close()
}

// server answers the calls.
type server struct {
	options Options
	lines   *lines
	lock    sync.Mutex
	ended   bool
	calls   sync.WaitGroup
}

// enter counts a call, unless the session has ended.
func (s *server) enter() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.ended {
		s.calls.Add(1)
	}
	return !s.ended
}

// leave lets no other call begin and waits for those that run.
func (s *server) leave() error {
	s.lock.Lock()
	s.ended = true
	s.lock.Unlock()
	patience := cmp.Or(s.options.LeaveTimeout, 10*time.Second)
	left := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(left)
	}()
	select {
	case <-left:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("a call did not end within %s of its session: a file system hangs", patience)
	}
}

func (o Options) architecture() string {
	if o.Architecture != "" {
		return o.Architecture
	}
	return runtime.GOARCH
}

func (o Options) log() io.Writer {
	if o.Log != nil {
		return o.Log
	}
	return io.Discard
}

func (o Options) facts() facts.Source {
	return facts.Source{
		Root: o.Root, Hostname: o.Hostname, Architecture: o.Architecture, Kernel: o.Kernel, User: o.User,
		Interfaces: o.Interfaces, NvidiaSMI: o.NvidiaSMI, Listening: o.Listening, Now: o.Now,
		Routing: o.Routing, Run: o.Run, Listeners: o.Listeners,
	}
}

// account is the login's name and home folder.
func (o Options) account() (name, home string) {
	user := o.facts().Account()
	if o.Home != "" {
		return user.Name, o.Home
	}
	return user.Name, user.Home
}

// folder resolves a folder of a request: how messages call it, and where it lies.
func (o Options) folder(requested string) (named, real string, err error) {
	_, home := o.account()
	named, err = files.Absolute(requested, home)
	return named, filepath.Join(o.PathRoot, named), err
}

func (o Options) free(path string) (int64, error) {
	if o.FreeBytes != nil {
		return o.FreeBytes(path)
	}
	return disk.Free(path)
}
