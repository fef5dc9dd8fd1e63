package sshx

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// stderrTail is how much of a command's error output is kept.
const stderrTail = 4 << 10

// Start implements Client.
func (c *client) Start(ctx context.Context, command string) (*Process, error) {
	if ctx.Err() != nil {
		return nil, c.fail(interruptedKind(ctx), stepSession, context.Cause(ctx))
	}
	pause := sessionRetryFirst
	var since time.Time // the first refusal after which no session of ours has ended
	var ended int
	for {
		if err := c.sessions.take(ctx, c.done); err != nil {
			if ended := c.Err(); ended != nil {
				return nil, ended
			}
			return nil, c.fail(interruptedKind(ctx), stepWait, err)
		}
		r, refusal, err := c.startOnce(ctx, command)
		if err == nil {
			return &Process{Stdin: r.stdin, Stdout: r.stdout, Stderr: r.stderr.String, Wait: r.result, Close: r.close}, nil
		}
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) {
			return nil, err
		}
		if since.IsZero() || refusal.ended != ended {
			since, ended = time.Now(), refusal.ended
		}
		patience := sessionPatience
		if refusal.others {
			patience = sessionPatienceBesideOthers
		}
		if refused.Reason != ssh.ConnectionFailed || time.Since(since) > patience {
			return nil, c.fail(NoSession, stepSession, refused)
		}
		if !sleep(ctx, pause) {
			return nil, c.fail(interruptedKind(ctx), stepWait, context.Cause(ctx))
		}
		pause = min(2*pause, sessionRetryLast)
	}
}

const (
	// sshd gives a session's place back a moment after its end: it handles all packets that have
	// come, such as our next request, before it tidies up. And MaxSessions may be lower than our
	// limit. So a refused session is asked for again, at these intervals; and for so long, while none
	// of our own ends.
	sessionRetryFirst           = 5 * time.Millisecond
	sessionRetryLast            = 200 * time.Millisecond
	sessionPatience             = 10 * time.Second
	sessionPatienceBesideOthers = time.Minute
)

// refusal is what was seen of the other sessions when sshd refused one.
type refusal struct {
	others bool
	ended  int
}

// startOnce uses a slot that was taken: it is given back when the session has ended, which for an abandoned
// one is later than the return from here, or when there was none.
func (c *client) startOnce(ctx context.Context, command string) (*running, refusal, error) {
	var seen atomic.Value
	r, err := attempt(ctx, c, stepSession, func() (*running, error) {
		r, err := c.begin(command)
		var refused *ssh.OpenChannelError
		switch {
		case errors.As(err, &refused):
			others, ended := c.sessions.refused()
			seen.Store(refusal{others, ended})
			return nil, err
		case err != nil:
			c.sessions.give()
			return nil, err
		}
		c.sessions.opened()
		go r.wait(c.sessions.give)
		return r, nil
	}, func(late *running) { _ = late.close() })
	refused, _ := seen.Load().(refusal) // none is the zero value
	return r, refused, err
}

// running is a started command.
type running struct {
	client  *client
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *tail
	ended   chan struct{}
	code    int
	err     error
}

// begin opens a session and starts the command; it waits for the peer without a context.
func (c *client) begin(command string) (*running, error) {
	session, err := c.ssh.NewSession()
	if err != nil {
		return nil, err
	}
	r := &running{client: c, session: session, stderr: &tail{}, ended: make(chan struct{})}
	session.Stderr = r.stderr
	var stdout io.Reader
	stdin, err := session.StdinPipe()
	if err == nil {
		r.stdin = &input{inner: stdin}
		stdout, err = session.StdoutPipe()
	}
	if err == nil {
		err = session.Start(command)
	}
	if err != nil {
		_ = session.Close()
		if lost := c.lost(); lost != nil {
			return nil, lost
		}
		return nil, c.fail(NoSession, "start of the command", err)
	}
	r.stdout = &explained{c, stdout}
	return r, nil
}

// wait collects the exit status and gives the session's slot back.
func (r *running) wait(release func()) {
	defer release()
	err := r.session.Wait()
	_ = r.session.Close()
	var exit *ssh.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.code = exit.ExitStatus() // 128 + signal for one that was killed
	default:
		r.code, r.err = -1, r.client.fail(Lost, stepCommand, err)
		if lost := r.client.lost(); lost != nil {
			r.err = lost
		}
	}
	close(r.ended)
}

// result implements Process.Wait.
func (r *running) result() (int, error) {
	select {
	case <-r.ended:
	case <-r.client.done:
		// The transport is gone; whether the session notices is no longer of interest, unless it
		// already had ended.
		if !isClosed(r.ended) {
			return -1, r.client.err
		}
	}
	return r.code, r.err
}

// close implements Process.Close. sshd does not end a command whose channel closes, so it is killed
// first; where sshd refuses that (a forced command), it sees its standard input end.
func (r *running) close() error {
	if isClosed(r.ended) {
		return nil
	}
	go func() {
		_ = r.session.Signal(ssh.SIGKILL)
		_ = r.session.Close()
	}()
	return nil
}

// explained is a command's output; a lost connection is named, where the channel has a plain EOF.
type explained struct {
	client *client
	reader io.Reader
}

// Read implements io.Reader.
func (e *explained) Read(p []byte) (int, error) {
	n, err := e.reader.Read(p)
	if err != nil {
		if lost := e.client.lost(); lost != nil {
			return n, lost
		}
	}
	return n, err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - stderrTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String is the kept end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
