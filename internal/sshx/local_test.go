package sshx

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLocal(t *testing.T) {
	c := Local("here")
	t.Cleanup(func() { _ = c.Close() })
	out, err := Run(t.Context(), c, "cat; echo oops >&2; exit 3", strings.NewReader("some input"))
	if err != nil || out.ExitCode != 3 || string(out.Stdout) != "some input" || out.Stderr != "oops\n" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := Run(t.Context(), c, "exit 0", strings.NewReader(strings.Repeat("x", 1<<20))); err != nil || out.ExitCode != 0 {
		t.Errorf("input that nobody reads: %+v, %v", out, err)
	}
	if out, err := Run(t.Context(), c, "kill -9 $$", nil); err != nil || out.ExitCode != 137 {
		t.Errorf("killed: %+v, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := Run(ctx, c, "sleep 60", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("cut: %v after %s", err, time.Since(start))
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if out, err := Run(t.Context(), c, "cat", strings.NewReader("x")); err != nil || string(out.Stdout) != "x" {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	wait.Wait()
}

func TestLocalOutputOutlivesTheCommand(t *testing.T) {
	c := Local("here")
	t.Cleanup(func() { _ = c.Close() })
	process, err := c.Start(t.Context(), "echo all of it")
	if err != nil {
		t.Fatal(err)
	}
	if code, err := process.Wait(); code != 0 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	if out, err := io.ReadAll(process.Stdout); string(out) != "all of it\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLocalDial(t *testing.T) {
	c := Local("here")
	t.Cleanup(func() { _ = c.Close() })
	socket := listenUnix(t, func(conn net.Conn) { go func() { _, _ = io.Copy(conn, conn) }() })
	conn, err := c.DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		buffer := make([]byte, 2)
		if _, err := io.ReadFull(conn, buffer); err != nil || half.CloseWrite() != nil {
			t.Errorf("%q, %v", buffer, err)
		}
	} else {
		t.Error("no CloseWrite")
	}
	_, err = c.DialContext(t.Context(), "unix", socket+"-missing")
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != ConnectFailed || !failure.RefusedThere() || !strings.Contains(failure.Advice(), "without SSH") {
		t.Errorf("%v", err)
	}
	// The end closes what is open, and nothing begins after it.
	_ = c.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
	if _, err := c.DialContext(t.Context(), "unix", socket); kindOf(err) != Lost || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := c.Start(t.Context(), "true"); kindOf(err) != Lost {
		t.Errorf("%v", err)
	}
}

// TestLocalLeavesNothing: Close ends a command with what it has started.
func TestLocalLeavesNothing(t *testing.T) {
	c := Local("here")
	process, err := c.Start(t.Context(), "sleep 2468 & echo started; wait")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(process.Stdout, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if code, err := process.Wait(); code != -1 || kindOf(err) != Lost {
		t.Errorf("%d, %v", code, err)
	}
	// The output ends when nobody holds it any more.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, process.Stdout)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("a child lives on")
	}
	select {
	case <-c.Done():
	default:
		t.Error("not done")
	}
}
