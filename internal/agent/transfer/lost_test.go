package transfer

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// wire is a bad network: it passes connections on and does to each what fault says.
type wire struct {
	moved, conns atomic.Int64
	// fault is called with the number of the connection, from 1, and each part on its way to the receiver. It
	// may change the part, wait, or end the connection by false.
	fault func(ctx context.Context, number int64, part []byte) bool
}

// open listens, and gives the address that leads to the target.
func (w *wire) open(t *testing.T, target string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.4:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		open.Wait()
	})
	open.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { w.pass(ctx, near, target) })
		}
	})
	return listener.Addr().String()
}

func (w *wire) pass(ctx context.Context, near net.Conn, target string) {
	defer near.Close() //nolint:errcheck // The test is about what the ends see.
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // As above.
	stop := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer stop()
	number := w.conns.Add(1)
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	defer back.Wait()
	defer far.Close() //nolint:errcheck // As above.
	buffer := make([]byte, 64<<10)
	for {
		n, err := near.Read(buffer)
		w.moved.Add(int64(n))
		if n > 0 && !w.fault(ctx, number, buffer[:n]) {
			return
		}
		if n > 0 {
			if _, err := far.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// What the network loses is sent again on another connection, and not more than was lost.
func TestLostConnections(t *testing.T) {
	const size = 48 << 20
	cut := func(after int64) func(context.Context, int64, []byte) bool {
		var passed sync.Map
		return func(_ context.Context, number int64, part []byte) bool {
			count, _ := passed.LoadOrStore(number, new(atomic.Int64))
			counter, _ := count.(*atomic.Int64)
			return counter.Add(int64(len(part))) < after || number > 3
		}
	}
	tests := map[string]struct {
		fault func(context.Context, int64, []byte) bool
		conns int64
	}{
		"cut three times": {cut(8 << 20), 4},
		"stands still": {func() func(context.Context, int64, []byte) bool {
			goesOn := cut(8 << 20)
			return func(ctx context.Context, number int64, part []byte) bool {
				if !goesOn(ctx, number, part) {
					<-ctx.Done() // Neither end is told anything.
					return false
				}
				return true
			}
		}(), 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.from.StallTimeout, p.to.StallTimeout = 500*time.Millisecond, 700*time.Millisecond
			content := noise(11, size)
			write(t, p.from.Real, "model", content)
			p.list(t)
			bad := &wire{fault: test.fault}
			p.through = func(target string) string { return bad.open(t, target) }
			last := int64(0)
			p.onBytes = func(bytes int64) { last = bytes }
			if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
				t.Fatal(err, p.sendErr)
			}
			if diff := cmp.Diff(map[string]string{"model": digest(content)}, contents(t, p.to.Real)); diff != "" {
				t.Error(diff)
			}
			if bad.conns.Load() != test.conns {
				t.Errorf("%d connections", bad.conns.Load())
			}
			// What was on its way when a connection was lost may be lost: the buffers of both ends.
			if moved := bad.moved.Load(); moved > size+3*(12<<20) {
				t.Errorf("%d bytes were moved for %d", moved, size)
			}
			if last != size {
				t.Errorf("%d bytes are counted", last)
			}
		})
	}
}

// A network that never carries a whole part is no endless loop.
func TestConnectionsThatAreAlwaysLost(t *testing.T) {
	p := newPair(t)
	write(t, p.from.Real, "model", noise(12, 4<<20))
	p.list(t)
	p.to.ConnectTimeout = time.Second
	bad := &wire{fault: func(_ context.Context, _ int64, part []byte) bool { return len(part) < 32<<10 }}
	p.through = func(target string) string { return bad.open(t, target) }
	err := p.run(t.Context(), t)
	if codeOf(err) != agent.TransferFailed || !strings.Contains(err.Error(), "closed the connection") || p.sendErr == nil {
		t.Errorf("receiver: %v, sender: %v", err, p.sendErr)
	}
	if bad.conns.Load() != tries {
		t.Errorf("%d connections", bad.conns.Load())
	}
}

// A bit that flips on its way is found, and nothing of it gets the file's name.
func TestBitFlippedInFlight(t *testing.T) {
	p := newPair(t)
	write(t, p.from.Real, "model", noise(13, 4<<20))
	p.list(t)
	bad := &wire{}
	var once sync.Once
	bad.fault = func(_ context.Context, _ int64, part []byte) bool {
		if len(part) > 32<<10 {
			once.Do(func() { part[17] ^= 4 })
		}
		return true
	}
	p.through = func(target string) string { return bad.open(t, target) }
	if err := p.run(t.Context(), t); codeOf(err) != agent.TransferMismatch {
		t.Errorf("got %v", err)
	}
	if left := contents(t, p.to.Real); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	p.through = nil
	if err := p.run(t.Context(), t); err != nil {
		t.Error(err)
	}
}

// The receiver is written to by nobody else than who holds the file.
func TestFileHeldByAnotherTransfer(t *testing.T) {
	p := newPair(t)
	write(t, p.from.Real, "model", noise(14, 1000))
	p.list(t)
	if err := os.MkdirAll(p.to.Real, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := files.OpenFolder(p.to.Real)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // Only the lock matters.
	held, err := openPartial(t.Context(), root, filepath.Join(files.Partial, "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // As above.
	if err := p.run(t.Context(), t); err == nil || !strings.Contains(err.Error(), errBusy.Error()) {
		t.Errorf("got %v", err)
	}
}
