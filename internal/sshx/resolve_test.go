package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// fakeClient puts a program named ssh into PATH that notes its arguments and prints an answer.
func fakeClient(t *testing.T, script string) (called func() string) {
	t.Helper()
	folder := t.TempDir()
	note := filepath.Join(folder, "called")
	content := "#!/bin/sh\necho \"$@\" >>" + note + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(folder, "ssh"), []byte(content), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	return func() string {
		text, err := os.ReadFile(note)
		if err != nil {
			return ""
		}
		return string(text)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestResolve(t *testing.T) {
	isolate(t)
	q := query{"spark", "me", 2200}
	t.Run("asks the client", func(t *testing.T) {
		called := fakeClient(t, "echo hostname 10.0.0.1; echo user me; echo port 2200")
		file := writeFile(t, "Host spark\nHostName other\n")
		found, warnings, err := resolve(t.Context(), q, file)
		if err != nil || len(warnings) > 0 || found.hostName != "10.0.0.1" {
			t.Errorf("%+v, %q, %v", found, warnings, err)
		}
		if got := called(); !strings.Contains(got, "-G") || !strings.Contains(got, "-F "+file+" -l me -p 2200 -- spark") {
			t.Errorf("called with %q", got)
		}
	})
	t.Run("revoked keys", func(t *testing.T) {
		called := fakeClient(t, "echo hostname 10.0.0.1; echo revokedhostkeys /a /b")
		found, _, err := resolve(t.Context(), q, writeFile(t, "RevokedHostKeys /a /b\n"))
		if err != nil || len(found.revokedHostKeys) != 2 || found.revokedHostKeys[1] != "/b" || called() == "" {
			t.Errorf("%+v, %v", found, err)
		}
	})
	t.Run("no process for what says nothing", func(t *testing.T) {
		called := fakeClient(t, "echo hostname wrong")
		found, _, err := resolve(t.Context(), q, writeFile(t, "Host *\n SendEnv LANG LC_*\n HashKnownHosts yes\n"))
		if err != nil || found.hostName != "" || called() != "" {
			t.Errorf("%+v, %v, called with %q", found, err, called())
		}
		if _, _, err := resolve(t.Context(), q, "none"); err != nil || called() != "" {
			t.Errorf("none: %v, called with %q", err, called())
		}
	})
	t.Run("a client that refuses", func(t *testing.T) {
		fakeClient(t, "echo bad configuration options >&2; exit 255")
		found, warnings, err := resolve(t.Context(), q, writeFile(t, "HostName ten\n"))
		if err != nil || found.hostName != "ten" || len(warnings) != 1 || !strings.Contains(warnings[0], "bad configuration options") {
			t.Errorf("%+v, %q, %v", found, warnings, err)
		}
	})
	t.Run("a client that hangs", func(t *testing.T) {
		fakeClient(t, "exec /bin/sleep 60")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, _, err := resolve(ctx, q, writeFile(t, "HostName ten\n")); err == nil || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
	t.Run("without a client", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		file := writeFile(t, "Match exec \"true\"\nUser nobody\nMatch final\nUser nobody\nHost *\nHostName ten\nPort none\nIdentityFile \"/a\n")
		found, warnings, err := resolve(t.Context(), q, file)
		if err != nil || found.hostName != "ten" || found.user != "" {
			t.Errorf("%+v, %v", found, err)
		}
		for i, word := range []string{":8: a quote is not closed", ":1: Match exec is not understood", ":3: Match final is not understood", `:7: "none" is no port`} {
			if i >= len(warnings) || !strings.Contains(warnings[i], word) {
				t.Errorf("%q is not warning %d of %q", word, i, warnings)
			}
		}
	})
	t.Run("Include in a circle", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte("Port 5\nInclude "+file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		found, warnings, err := resolve(t.Context(), q, file)
		if err != nil || found.port != 5 || len(warnings) == 0 {
			t.Errorf("%+v, %q, %v", found, warnings, err)
		}
	})
}

// busyServer closes so many connections with the words given, before those that follow reach the server.
func busyServer(t *testing.T, s *server, closed int32, words string) (port int, seen *atomic.Int32) {
	t.Helper()
	seen = &atomic.Int32{}
	return listen(t, func(conn net.Conn) {
		if seen.Add(1) <= closed {
			_, _ = conn.Write([]byte(words))
			_ = conn.Close()
			return
		}
		through, err := net.Dial("tcp", s.listener.Addr().String()) //nolint:noctx // loopback
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = through.Close() })
		go func() { _, _ = copyAll(through, conn) }()
		go func() { _, _ = copyAll(conn, through) }()
	}), seen
}

func copyAll(to, from net.Conn) (int64, error) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			_ = to.Close()
			return 0, err
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return 0, err
		}
	}
}

func TestBusy(t *testing.T) {
	isolate(t)
	key, public := newKey(t, "")
	s := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}})
	base := Config{
		Host: "127.0.0.1", User: "spark", PrivateKey: key, ConfigFile: "none",
		HostKey: ssh.FingerprintSHA256(s.hostKey.PublicKey()),
	}
	for _, words := range []string{"", "Exceeded MaxStartups\r\n"} {
		t.Run(fmt.Sprintf("in the end let in, %q", words), func(t *testing.T) {
			config := base
			var seen *atomic.Int32
			config.Port, seen = busyServer(t, s, 4, words)
			c, err := Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			if seen.Load() != 5 {
				t.Errorf("%d connections", seen.Load())
			}
		})
		t.Run(fmt.Sprintf("never let in, %q", words), func(t *testing.T) {
			config := base
			config.Timeout = 300 * time.Millisecond
			config.Port, _ = busyServer(t, s, 1000, words)
			wantKind(t, config, Busy, "times", "MaxStartups")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			config.Timeout = time.Minute
			start := time.Now()
			if _, err := Dial(ctx, config); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
				t.Errorf("%v after %s", err, time.Since(start))
			}
		})
	}
	t.Run("penalised", func(t *testing.T) {
		config := base
		var seen *atomic.Int32
		config.Port, seen = busyServer(t, s, 1000, "Not allowed at this time\r\n")
		wantKind(t, config, Penalised, "PerSourcePenalties", "Not allowed at this time")
		if seen.Load() != 1 {
			t.Errorf("asked %d times", seen.Load())
		}
	})
}

func TestSlots(t *testing.T) {
	s := newSlots(8)
	take := func(want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.take(ctx, nil); (err == nil) != want {
			t.Fatalf("take: %v, limit %d, open %d", err, s.limit, s.open)
		}
	}
	for range 8 {
		take(true)
	}
	take(false)
	// The server allows three: five are refused.
	for i := range 5 {
		if others, _ := s.refused(); !others || s.limit != 7-i {
			t.Errorf("refusal %d: limit %d", i, s.limit)
		}
	}
	take(false)
	s.give()
	take(true)
	take(false)
	// After a while one more is tried: let in, it raises the limit; refused, it changes nothing.
	if err := s.take(t.Context(), nil); err != nil || s.open != 4 {
		t.Fatalf("%v, open %d", err, s.open)
	}
	take(false)
	s.opened()
	if s.limit != 4 {
		t.Errorf("limit %d", s.limit)
	}
	if err := s.take(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if others, ended := s.refused(); !others || ended != 1 || s.limit != 4 {
		t.Errorf("%v, %d ended, limit %d", others, ended, s.limit)
	}
	// Whoever waits is woken by the end of the connection.
	done := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(done) })
	if err := s.take(t.Context(), done); !errors.Is(err, errEnded) {
		t.Errorf("%v", err)
	}
}

// TestSilentAgent: an agent that does not answer is named, and holds up nobody who gives up.
func TestSilentAgent(t *testing.T) {
	isolate(t)
	folder, err := os.MkdirTemp("", "agent") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "s")) //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	t.Setenv("SSH_AUTH_SOCK", listener.Addr().String())
	config := Config{Host: "127.0.0.1", Port: 1, User: "me", ConfigFile: "none", HostKey: "SHA256:AAAA", Timeout: 200 * time.Millisecond}
	wantKind(t, config, AgentFailed, "does not answer", "SSH_AUTH_SOCK")
	config.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := Dial(ctx, config); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

func TestProxyCommandTakesNoShellCharacters(t *testing.T) {
	isolate(t)
	key, _ := newKey(t, "")
	t.Setenv("PATH", t.TempDir()) // ssh itself refuses such a name too
	config := Config{Host: "a;touch b", User: "me", PrivateKey: key, ConfigFile: writeFile(t, "ProxyCommand echo %h\n"), HostKey: "SHA256:AAAA"}
	wantKind(t, config, BadSettings, "mean something to a shell")
}
