package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// channelError stands for the SSH layer's error, which this package does not know.
type channelError struct {
	text    string
	refused bool
}

func (e *channelError) Error() string      { return e.text }
func (e *channelError) RefusedThere() bool { return e.refused }

// Timeout would make the Docker library replace the error by a text of its own.
func (e *channelError) Timeout() bool   { return true }
func (e *channelError) Temporary() bool { return true }

func TestDialFailures(t *testing.T) {
	refused := &channelError{`rejected: connect failed ("open failed")`, true}
	lost := &channelError{"host spark-a: the SSH connection was lost: dial unix: connection refused", false}
	tests := []struct {
		name     string
		cause    error
		diagnose Diagnose
		kind     Kind
		words    string
	}{
		{"refused by the socket", refused, nil, Down, "no Docker engine answers on " + DefaultSocket},
		{"no permission, says the machine", refused, func(context.Context) (Kind, string) {
			return Denied, "user u (groups: u) may not write the socket"
		}, Denied, "may not write the socket"},
		{"the machine cannot tell", refused, func(context.Context) (Kind, string) { return Failed, "" }, Down, "no Docker engine answers"},
		{"no socket, direct", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENOENT)}, nil, Down, "no Docker engine"},
		{"nobody listens, direct", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, nil, Down, "no Docker engine"},
		{"no permission, direct", &fs.PathError{Op: "dial", Err: syscall.EACCES}, nil, Denied, "may not use"},
		{"connection lost", lost, func(context.Context) (Kind, string) { return Denied, "must not be asked" }, Lost, "the SSH connection was lost"},
		{"connection lost, wrapped", fmt.Errorf("again: %w", lost), nil, Lost, "the SSH connection was lost"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := New("spark-a", func(context.Context, string, string) (net.Conn, error) { return nil, test.cause }, "", WithDiagnose(test.diagnose))
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Container(t.Context(), "x")
			if kindOf(err) != test.kind || !strings.Contains(err.Error(), test.words) || !strings.HasPrefix(err.Error(), "spark-a: ") {
				t.Errorf("kind %d: %v", kindOf(err), err)
			}
			var channel *channelError
			if !errors.Is(err, test.cause) || errors.As(test.cause, &channel) && !errors.As(err, &channel) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

func TestContextEndsCalls(t *testing.T) {
	e, err := New("spark-a", func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := e.Version(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
