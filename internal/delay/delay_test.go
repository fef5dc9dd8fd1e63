package delay

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"testing"
	"time"
)

// echo answers every connection with what it hears.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the test sees what arrived
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// through connects to target by way of a proxy with a delay.
func through(t *testing.T, target string, oneWay time.Duration) net.Conn {
	t.Helper()
	proxy, err := NewProxy(t.Context(), "127.0.0.1", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.SetDelay(oneWay)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(proxy.Port())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestProxyDelays: a round trip takes twice the delay, the first one 1.5 round trips more, which a
// connection over a real line costs before its far end is accepted.
func TestProxyDelays(t *testing.T) {
	const oneWay = 20 * time.Millisecond
	conn := through(t, echo(t), oneWay)
	ask := func() time.Duration {
		start := time.Now()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	// The first byte is on its way while the connection is made: 3 delays, then one back.
	if first := ask(); first < 4*oneWay {
		t.Errorf("the first answer came after %s, sooner than 4 delays of %s", first, oneWay)
	}
	for range 3 {
		if next := ask(); next < 2*oneWay {
			t.Errorf("an answer came after %s, sooner than 2 delays of %s", next, oneWay)
		}
	}
}

// TestProxyCarries: order is kept, much is in flight at once, and the end of each direction arrives.
func TestProxyCarries(t *testing.T) {
	for _, oneWay := range []time.Duration{0, 5 * time.Millisecond} {
		conn := through(t, echo(t), oneWay)
		sent := make([]byte, 24<<20)
		for i := range sent {
			sent[i] = byte(i * 31 >> 7)
		}
		go func() {
			_, _ = conn.Write(sent)
			if half, ok := conn.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
		}()
		received, err := io.ReadAll(conn)
		if err != nil {
			t.Fatalf("delay %s: %v", oneWay, err)
		}
		if !bytes.Equal(received, sent) {
			t.Errorf("delay %s: %d bytes arrived, or in another order; %d were sent", oneWay, len(received), len(sent))
		}
	}
}

// TestProxyEnds: a target that refuses ends the connection instead of leaving it open.
func TestProxyEnds(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	conn := through(t, closed, 0)
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("something was read where nothing listens")
	}
}
