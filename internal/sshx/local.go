package sshx

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"sync"
)

// local is a Client for the machine that we run on.
type local struct {
	host string

	mutex     sync.Mutex
	processes map[*localProcess]struct{}
	conns     map[*localConn]struct{}
	end       sync.Once
	done      chan struct{}
}

// Local gives a Client for the machine that we run on, without SSH: it runs commands with /bin/sh and opens
// connections directly. Host is its name in errors. Close ends all that it started.
func Local(host string) Client {
	return &local{
		host: host, processes: map[*localProcess]struct{}{}, conns: map[*localConn]struct{}{}, done: make(chan struct{}),
	}
}

// Start implements Client.
func (l *local) Start(ctx context.Context, line string) (*Process, error) {
	const step = "start of the command"
	if ctx.Err() != nil {
		return nil, l.fail(interruptedKind(ctx), step, context.Cause(ctx))
	}
	command, err := shell(line)
	if err != nil {
		return nil, l.fail(NoSession, step, err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if isClosed(l.done) {
		return nil, l.Err()
	}
	p, err := l.run(command)
	if err != nil {
		return nil, l.fail(NoSession, step, err)
	}
	l.processes[p] = struct{}{}
	go p.wait()
	return &Process{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr.String, Wait: p.result, Close: p.close}, nil
}

// DialContext implements Client.
func (l *local) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	step := stepChannel + " to " + address
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, l.fail(interruptedKind(ctx), step, context.Cause(ctx))
	default:
		// Over SSH the machine says the same of all that does not take a connection.
		return nil, l.fail(ConnectFailed, step, err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if isClosed(l.done) {
		_ = conn.Close()
		return nil, l.Err()
	}
	made := &localConn{conn, l}
	l.conns[made] = struct{}{}
	return made, nil
}

// localConn is forgotten when it is closed.
type localConn struct {
	net.Conn
	local *local
}

// Close implements net.Conn.
func (c *localConn) Close() error {
	c.local.mutex.Lock()
	delete(c.local.conns, c)
	c.local.mutex.Unlock()
	return c.Conn.Close()
}

// CloseWrite sends the end of file and keeps the other direction open.
func (c *localConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Done implements Client.
func (l *local) Done() <-chan struct{} { return l.done }

// Err implements Client.
func (l *local) Err() error {
	if !isClosed(l.done) {
		return nil
	}
	return l.fail(Lost, "connection", net.ErrClosed)
}

// Warnings implements Client.
func (l *local) Warnings() []string { return nil }

// Close implements Client: it kills what was started and waits for its end.
func (l *local) Close() error {
	l.end.Do(func() {
		l.mutex.Lock()
		close(l.done)
		processes, conns := l.processes, l.conns
		l.processes, l.conns = nil, nil
		l.mutex.Unlock()
		for p := range processes {
			killGroup(p.command)
		}
		for c := range conns {
			_ = c.Conn.Close()
		}
		for p := range processes {
			<-p.ended
		}
	})
	return nil
}

func (l *local) fail(kind Kind, step string, err error) *Error {
	return &Error{Kind: kind, Host: l.host, Step: step, Local: true, Err: err}
}

// run starts a command with pipes; l.mutex is held.
func (l *local) run(command *exec.Cmd) (*localProcess, error) {
	p := &localProcess{local: l, command: command, stderr: &tail{}, ended: make(chan struct{})}
	command.Stderr = p.stderr
	command.WaitDelay = pipeSettles
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = &localInput{stdin}
	output, err := newOutput(command)
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, stdin.Close(), output.abandon())
	}
	output.started()
	p.stdout = output
	return p, nil
}
