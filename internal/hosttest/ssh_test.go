package hosttest

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func TestCommands(t *testing.T) {
	f := NewFleet(t, 2)
	c := mustDial(t, f, 1)
	for _, test := range []struct {
		command, output string
		code            int
	}{
		{"hostname", "aurora-2\n", 0},
		{"id -nG", "aurora sudo docker\n", 0},
		{"test -S /var/run/docker.sock", "", 0},
		{"sh -c 'test -S /var/run/docker.sock && test -w /var/run/docker.sock && echo yes || echo no'", "yes\n", 0},
		{"test -S /tmp/other.sock", "", 1},
		{"frobnicate -x", "sh: 1: frobnicate: not found\n", 127},
		{"! test -d '/models' || echo \"a  b\" 2>/dev/null; false", "a  b\n", 1},
		{`sh -c 'if test -S '\''/var/run/docker.sock'\''; then if test -w /nowhere; then echo writable; else echo denied; fi; else echo missing; fi; id -un'`, "denied\naurora\n", 0},
		{"if false; then echo 1; elif true; then echo 2; else echo 3; fi", "2\n", 0},
	} {
		if output, code := run(t, c, test.command); output != test.output || code != test.code {
			t.Errorf("%s: got %q, %d; want %q, %d", test.command, output, code, test.output, test.code)
		}
	}
	f.Host(1).DenySocket(true)
	if output, code := run(t, c, "id -nG; test -w /var/run/docker.sock"); output != "aurora sudo\n" || code != 1 {
		t.Errorf("a denied user: %q, %d", output, code)
	}
	f.Host(1).Shell("uptime", Outcome{Stdout: "up 2 days\n"})
	if output, _ := run(t, c, "uptime -p"); output != "up 2 days\n" {
		t.Errorf("prepared answer: %q", output)
	}
	if got := f.Host(1).Counters(); got.Connections != 1 || got.Handshakes != 1 || got.Sessions != 11 {
		t.Errorf("counters: %+v", got)
	}
	if got := f.Host(0).Counters(); got.Connections != 0 {
		t.Errorf("counters of another host: %+v", got)
	}
}

func TestKeepalive(t *testing.T) {
	f := NewFleet(t, 1)
	c := mustDial(t, f, 0)
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
		t.Errorf("keepalive: %v, %v", ok, err)
	}
	if got := f.Host(0).Counters().Keepalives; got != 1 {
		t.Errorf("%d keepalives", got)
	}
}

func TestConnectionFaults(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)

	h.StopSSH()
	if _, err := dialHost(t, f, 0); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped: %v", err)
	}
	h.StartSSH()

	h.DenyUser(true)
	if _, err := dialHost(t, f, 0); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("denied: %v", err)
	}
	h.DenyUser(false)

	c := mustDial(t, f, 0)
	h.ChangeHostKey()
	if err := c.Wait(); err == nil {
		t.Error("the connection survived a new host key")
	}
	_, err := dialHost(t, f, 0)
	if changed, ok := errors.AsType[*knownhosts.KeyError](err); !ok || len(changed.Want) != 1 {
		t.Errorf("changed key: %v", err)
	}
}

func TestForwardingFaults(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)
	c := mustDial(t, f, 0)
	check := func(network, address string, want ssh.RejectionReason) {
		t.Helper()
		conn, err := c.Dial(network, address)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s %s opened", network, address)
			return
		}
		refused, ok := errors.AsType[*ssh.OpenChannelError](err)
		if !ok || refused.Reason != want {
			t.Errorf("%s %s: %v", network, address, err)
		}
	}
	check("unix", "/tmp/other.sock", ssh.ConnectionFailed)
	check("tcp", "127.0.0.1:8000", ssh.ConnectionFailed)
	check("tcp", "127.0.100.200:6379", ssh.ConnectionFailed)
	h.DenySocket(true)
	check("unix", dockerSocket, ssh.ConnectionFailed)
	h.DenySocket(false)
	h.EngineDown(true)
	check("unix", dockerSocket, ssh.ConnectionFailed)
	h.EngineDown(false)
	h.ForbidForwarding(true)
	check("unix", dockerSocket, ssh.ConnectionFailed)
	check("tcp", "127.0.0.1:8000", ssh.Prohibited)
}

func TestHang(t *testing.T) {
	f := NewFleet(t, 1)
	f.Host(0).Hang(true)
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(f.Host(0).Address(), portText(f)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(conn, make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a hanging host answered %d bytes, %v", n, err)
	}
	f.Host(0).Hang(false)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 8)
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "SSH-2.0-" {
		t.Errorf("afterwards: %q, %v", greeting, err)
	}
}

func TestHangFreezesOpenConnections(t *testing.T) {
	f := NewFleet(t, 1)
	c := mustDial(t, f, 0)
	f.Host(0).Hang(true)
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a hanging host answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.Host(0).Hang(false)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("fleet", func(t *testing.T) {
		f := NewFleet(t, 2)
		f.WriteModel(0, "/models/tiny")
		f.WriteModel(1, "/models/tiny")
		startCluster(t, f)
		c := mustDial(t, f, 0)
		waitNodes(t, c, "127.0.100.11", "127.0.100.12")
		f.Host(0).RunContainer("vllm-pair", serveSpec(f))
		waitHealthy(t, c)
		f.Host(1).Hang(true)
		go func() { _, _ = c.Dial("tcp", "127.0.0.1:8000") }()
	})
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}
