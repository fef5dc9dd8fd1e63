package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func impatient(t *testing.T, dial Dialer, patience time.Duration) *docker {
	t.Helper()
	made, err := New("spark-a", dial, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	e, ok := made.(*docker)
	if !ok {
		t.Fatalf("New makes a %T", made)
	}
	e.patience = patience
	return e
}

func TestSilentEngine(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	calls := map[string]func(context.Context, Engine) error{
		"GET /containers/json":     func(ctx context.Context, e Engine) error { _, err := e.Containers(ctx, "", ""); return err },
		"GET /containers/one/json": func(ctx context.Context, e Engine) error { _, err := e.Container(ctx, "one"); return err },
		"GET /images/ray:1/json":   func(ctx context.Context, e Engine) error { _, err := e.Image(ctx, "ray:1"); return err },
		"HEAD /_ping":              func(ctx context.Context, e Engine) error { _, err := e.Version(ctx); return err },
	}
	for request, call := range calls {
		t.Run(request, func(t *testing.T) {
			f := startFake(t)
			f.answer[request] = hang
			var failed *Error
			err := call(t.Context(), impatient(t, f.dial, 200*time.Millisecond))
			if !errors.As(err, &failed) || failed.Kind != Down || !strings.Contains(err.Error(), "does not answer within 30s") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSilentWay(t *testing.T) {
	e := impatient(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, 50*time.Millisecond)
	_, err := e.Version(t.Context())
	var failed *Error
	if !errors.As(err, &failed) || failed.Kind != Lost || !strings.Contains(err.Error(), "was not opened within 30s") {
		t.Errorf("got %v", err)
	}
}

func TestShorterDeadlineWins(t *testing.T) {
	f := startFake(t)
	f.answer["HEAD /_ping"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	reason := errors.New("the plan was given up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, reason)
	defer cancel()
	if _, err := impatient(t, f.dial, time.Minute).Version(ctx); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}
