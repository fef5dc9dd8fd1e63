package sshx

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// connect gives a client of a test server, with a keepalive as asked (zero: the usual one).
func connect(t *testing.T, options serverOptions, live liveness, dialer func(context.Context, string, string) (net.Conn, error)) (*client, *server) {
	t.Helper()
	isolate(t)
	key, public := newKey(t, "")
	options.allowed = append(options.allowed, public)
	s := startServer(t, options)
	if live.interval == 0 {
		live = liveness{keepaliveInterval, keepalivePatience}
	}
	c, failure := dial(t.Context(), Config{
		Host: "127.0.0.1", Port: s.port, User: "spark", PrivateKey: key,
		HostKey: ssh.FingerprintSHA256(s.hostKey.PublicKey()), Dialer: dialer,
	}, live, way{})
	if failure != nil {
		t.Fatal(failure)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

func kindOf(err error) Kind {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Kind
	}
	return -1
}

func TestForwarding(t *testing.T) {
	c, _ := connect(t, serverOptions{forward: func(network, address string) *ssh.OpenChannelError {
		switch address {
		case "/forbidden":
			return &ssh.OpenChannelError{Reason: ssh.Prohibited, Message: "open failed"}
		case "10.0.0.1:9":
			return &ssh.OpenChannelError{Reason: ssh.ConnectionFailed, Message: "Connection refused"}
		}
		return nil
	}}, liveness{}, nil)
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			conn, err := c.DialContext(t.Context(), "unix", fmt.Sprintf("/run/%d.sock", i))
			if err != nil {
				t.Error(err)
				return
			}
			sent := make([]byte, 100_000)
			_, _ = rand.Read(sent)
			go func() { _, _ = conn.Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("channel %d: %v", i, err)
			}
			if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
				t.Error("no CloseWrite")
			}
			if n, err := conn.Read(got); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("read %d, %v after the end", n, err)
			}
			_ = conn.Close()
		})
	}
	wait.Wait()
	if _, err := c.DialContext(t.Context(), "unix", "/forbidden"); kindOf(err) != ForwardingForbidden {
		t.Errorf("forbidden: %v", err)
	}
	if _, err := c.DialContext(t.Context(), "tcp", "10.0.0.1:9"); kindOf(err) != ConnectFailed || !strings.Contains(err.Error(), "10.0.0.1:9") {
		t.Errorf("nothing there: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	c, _ := connect(t, serverOptions{}, liveness{}, nil)
	conn, err := c.DialContext(t.Context(), "unix", "/echo")
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 8)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read: %v", err)
	}
	// The connection is still good, and a deadline set during a read wakes it.
	_ = conn.SetDeadline(time.Time{})
	if _, err := conn.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(buffer); err != nil || string(buffer[:n]) != "hi" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	if _, err := conn.Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("woken read: %v", err)
	}
	// Nobody reads the echo, so that the window fills up.
	_ = conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Write(make([]byte, 16<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("write: %v", err)
	}
	if _, err := conn.Read(buffer); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("read after a late write: %v", err)
	}
}

func TestCancelDuringOpen(t *testing.T) {
	c, _ := connect(t, serverOptions{muteChannels: true}, liveness{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.DialContext(ctx, "unix", "/x"); !errors.Is(err, context.DeadlineExceeded) || kindOf(err) != TimedOut {
		t.Errorf("channel: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := c.Start(ctx, "cat"); !errors.Is(err, context.Canceled) {
		t.Errorf("session: %v", err)
	}
}

func TestCommands(t *testing.T) {
	c, s := connect(t, serverOptions{}, liveness{}, nil)
	out, err := Run(t.Context(), c, "cat", strings.NewReader("some input"))
	if err != nil || out.ExitCode != 0 || string(out.Stdout) != "some input" {
		t.Errorf("cat: %+v, %v", out, err)
	}
	out, err = Run(t.Context(), c, "exit 7", nil)
	if err != nil || out.ExitCode != 7 || out.Stderr != "leaving\n" {
		t.Errorf("exit: %+v, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Run(ctx, c, "sleep", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var wait sync.WaitGroup
	var failed atomic.Int32
	for range 30 {
		wait.Go(func() {
			if out, err := Run(t.Context(), c, "cat", strings.NewReader("x")); err != nil || string(out.Stdout) != "x" {
				failed.Add(1)
			}
		})
	}
	wait.Wait()
	if failed.Load() > 0 || s.peak.Load() > maxSessions {
		t.Errorf("%d failed, %d sessions at a time", failed.Load(), s.peak.Load())
	}
	// All slots taken: the next one waits, and gives up with its context.
	for range maxSessions {
		if _, err := c.Start(t.Context(), "sleep"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Start(ctx, "cat"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no session became free") {
		t.Errorf("ninth session: %v", err)
	}
}

// TestSessionsFull: sshd refuses a session while an ended one still has its place.
func TestSessionsFull(t *testing.T) {
	c, _ := connect(t, serverOptions{fullSessions: 3}, liveness{}, nil)
	if out, err := Run(t.Context(), c, "exit 2", nil); err != nil || out.ExitCode != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	c, _ = connect(t, serverOptions{fullSessions: 1000}, liveness{}, nil)
	for range 2 * maxSessions {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := c.Start(ctx, "cat"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "session") {
			t.Errorf("never free: %v", err)
		}
		cancel()
	}
}

func TestLostConnection(t *testing.T) {
	c, s := connect(t, serverOptions{}, liveness{}, nil)
	process, err := c.Start(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.DialContext(t.Context(), "unix", "/echo")
	if err != nil {
		t.Fatal(err)
	}
	if c.Err() != nil {
		t.Errorf("lost too early: %v", c.Err())
	}
	s.cut()
	if _, err := conn.Read(make([]byte, 1)); kindOf(err) != Lost {
		t.Errorf("read: %v", err)
	}
	if code, err := process.Wait(); code != -1 || kindOf(err) != Lost {
		t.Errorf("wait: %d, %v", code, err)
	}
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("not done")
	}
	if kindOf(c.Err()) != Lost || !errors.Is(c.Err(), net.ErrClosed) {
		t.Errorf("err: %v", c.Err())
	}
	if _, err := c.DialContext(t.Context(), "unix", "/echo"); kindOf(err) != Lost {
		t.Errorf("dial after the end: %v", err)
	}
	if _, err := c.Start(t.Context(), "cat"); kindOf(err) != Lost {
		t.Errorf("start after the end: %v", err)
	}
}

// frozen is a connection whose peer can stop answering without closing: nothing arrives any more.
type frozen struct {
	net.Conn
	stop chan struct{}
}

func (f *frozen) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	select {
	case <-f.stop:
		// What was read is swallowed; the next read waits until our side closes.
		if err == nil {
			return f.Read(p)
		}
	default:
	}
	return n, err
}

func TestKeepaliveFindsDeadPeer(t *testing.T) {
	stop := make(chan struct{})
	c, _ := connect(t, serverOptions{}, liveness{20 * time.Millisecond, 200 * time.Millisecond},
		func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return &frozen{conn, stop}, err
		})
	select {
	case <-c.Done():
		t.Fatalf("a living peer was given up: %v", c.Err())
	case <-time.After(500 * time.Millisecond):
	}
	close(stop)
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the dead peer was not found")
	}
	if kindOf(c.Err()) != Lost || !strings.Contains(c.Err().Error(), "no sign of life") {
		t.Errorf("err: %v", c.Err())
	}
}

// TestSessionsFullBesideALongOne: a refusal of a moment, while one session lasts, holds up nobody for long.
func TestSessionsFullBesideALongOne(t *testing.T) {
	c, s := connect(t, serverOptions{}, liveness{}, nil)
	if _, err := c.Start(t.Context(), "sleep"); err != nil {
		t.Fatal(err)
	}
	s.full.Store(1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if out, err := Run(ctx, c, "exit 2", nil); err != nil || out.ExitCode != 2 {
		t.Errorf("%+v, %v", out, err)
	}
}
