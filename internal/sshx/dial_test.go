package sshx

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// isolate keeps the developer's own keys, agent and known_hosts out of a test.
func isolate(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	return home
}

// wantKind dials, expects a failure of the kind and returns a copy; the error and its advice must hold
// the words.
func wantKind(t *testing.T, config Config, kind Kind, words ...string) Error {
	t.Helper()
	client, err := Dial(t.Context(), config)
	if err == nil {
		_ = client.Close()
		t.Fatal("connected")
	}
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("%T is no *Error: %v", err, err)
	}
	if failure.Kind != kind {
		t.Fatalf("kind %d, want %d: %v", failure.Kind, kind, err)
	}
	text := err.Error() + "\n" + failure.Advice()
	for _, word := range append(words, failure.Host) {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
	if strings.Contains(text, "PRIVATE KEY") || failure.Advice() == "" {
		t.Errorf("key material, or no advice, in:\n%s", text)
	}
	return *failure
}

func TestHostKeys(t *testing.T) {
	isolate(t)
	key, public := newKey(t, "")
	other, _ := newSigner(t)
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecdsaSigner, err := ssh.NewSignerFromKey(ecdsaKey)
	if err != nil {
		t.Fatal(err)
	}
	ed, _ := newSigner(t)
	s := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}, hostKeys: []ssh.Signer{ed, ecdsaSigner}})
	authorized := func(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }
	mine := ssh.FingerprintSHA256(ed.PublicKey())
	tests := []struct {
		name    string
		pin     string
		lines   []string
		kind    Kind
		words   []string
		connect bool
	}{
		{name: "known", lines: []string{s.line(ed.PublicKey())}, connect: true},
		{name: "known by its other key", lines: []string{s.line(ecdsaSigner.PublicKey())}, connect: true},
		{name: "known among broken lines", lines: []string{"garbage", s.line(ed.PublicKey())}, connect: true},
		{name: "unknown", lines: []string{"# empty"}, kind: UnknownHostKey, words: []string{mine, "ssh-keyscan -p", "host_key"}},
		{name: "changed", lines: []string{s.line(other.PublicKey())}, kind: ChangedHostKey,
			words: []string{mine, ssh.FingerprintSHA256(other.PublicKey()), "ssh-keygen -R '[127.0.0.1]:", "known_hosts:1"}},
		{name: "revoked", lines: []string{"@revoked * " + authorized(ed.PublicKey()), s.line(ed.PublicKey())}, kind: RevokedHostKey, words: []string{mine}},
		{name: "pinned key", pin: authorized(ed.PublicKey()), connect: true},
		{name: "pinned other type", pin: authorized(ecdsaSigner.PublicKey()), connect: true},
		{name: "pinned wrong key", pin: authorized(other.PublicKey()), kind: ChangedHostKey, words: []string{mine, "pinned"}},
		{name: "fingerprint", pin: mine, connect: true},
		{name: "fingerprint of the other type", pin: ssh.FingerprintSHA256(ecdsaSigner.PublicKey()), connect: true},
		{name: "wrong fingerprint", pin: "SHA256:AAAA", kind: ChangedHostKey,
			words: []string{mine, ssh.FingerprintSHA256(ecdsaSigner.PublicKey()), "SHA256:AAAA"}},
		{name: "pin that is none", pin: "-----BEGIN OPENSSH PRIVATE KEY-----", kind: BadSettings, words: []string{"fingerprint"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := Config{Host: "127.0.0.1", Port: s.port, User: "spark", PrivateKey: key, HostKey: test.pin}
			config.KnownHostsFiles = append(knownHosts(t, test.lines...), "/nonexistent/known_hosts")
			before, err := os.ReadFile(config.KnownHostsFiles[0])
			if err != nil {
				t.Fatal(err)
			}
			if test.connect {
				client, err := Dial(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				_ = client.Close()
			} else {
				wantKind(t, config, test.kind, test.words...)
			}
			if after, err := os.ReadFile(config.KnownHostsFiles[0]); err != nil || string(after) != string(before) {
				t.Errorf("known_hosts was touched: %v", err)
			}
		})
	}
}

func TestHostCertificate(t *testing.T) {
	isolate(t)
	key, public := newKey(t, "")
	authority, _ := newSigner(t)
	host, _ := newSigner(t)
	cert := &ssh.Certificate{
		Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"},
		ValidBefore: ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(cert, host)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}, hostKeys: []ssh.Signer{certified, host}})
	config := Config{Host: "127.0.0.1", Port: s.port, User: "spark", PrivateKey: key}
	config.KnownHostsFiles = knownHosts(t, "@cert-authority * "+string(ssh.MarshalAuthorizedKey(authority.PublicKey())))
	client, err := Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	stranger, _ := newSigner(t)
	config.KnownHostsFiles = knownHosts(t, "@cert-authority * "+string(ssh.MarshalAuthorizedKey(stranger.PublicKey())))
	wantKind(t, config, UnknownHostKey, ssh.FingerprintSHA256(host.PublicKey()), "is no trusted authority")
	// Without a trusted authority the key inside counts, and the authority's own key is no host's.
	config.KnownHostsFiles = knownHosts(t, s.line(host.PublicKey()))
	client, err = Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
}

func TestAuthentication(t *testing.T) {
	home := isolate(t)
	plain, public := newKey(t, "")
	locked, lockedPublic := newKey(t, "s3cret phrase")
	wrong, wrongPublic := newKey(t, "")
	s := startServer(t, serverOptions{allowed: []ssh.PublicKey{public, lockedPublic}, maxTries: 6})
	base := Config{Host: "127.0.0.1", Port: s.port, User: "spark", HostKey: ssh.FingerprintSHA256(s.hostKey.PublicKey())}
	connects := func(t *testing.T, change func(*Config)) {
		t.Helper()
		config := base
		change(&config)
		client, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(locked), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("encrypted key", func(t *testing.T) {
		connects(t, func(c *Config) { c.PrivateKey, c.Passphrase = locked, "s3cret phrase" })
		connects(t, func(c *Config) { c.PrivateKeyFile, c.Passphrase = file, "s3cret phrase" })
	})
	t.Run("encrypted key without passphrase", func(t *testing.T) {
		config := base
		config.PrivateKeyFile = file
		wantKind(t, config, KeyEncrypted, file, "encrypted and no passphrase")
	})
	t.Run("wrong passphrase", func(t *testing.T) {
		config := base
		config.PrivateKey, config.Passphrase = locked, "not it"
		if failure := wantKind(t, config, WrongPassphrase, "passphrase does not open it"); strings.Contains(failure.Error(), "not it") {
			t.Errorf("passphrase in %s", failure.Error())
		}
	})
	t.Run("key as path", func(t *testing.T) {
		config := base
		config.PrivateKeyFile = plain
		wantKind(t, config, KeyUnreadable, "not a path but a key")
	})
	t.Run("public key", func(t *testing.T) {
		config := base
		config.PrivateKey = string(ssh.MarshalAuthorizedKey(public))
		wantKind(t, config, KeyMalformed, "it is a public key")
	})
	t.Run("missing file", func(t *testing.T) {
		config := base
		config.PrivateKeyFile = "/nonexistent/key"
		failure := wantKind(t, config, KeyUnreadable, "/nonexistent/key")
		if !errors.Is(failure.Err, os.ErrNotExist) {
			t.Errorf("cause lost: %v", failure.Err)
		}
	})
	t.Run("wrong key", func(t *testing.T) {
		config := base
		config.PrivateKey = wrong
		wantKind(t, config, AuthFailed, `"spark"`, ssh.FingerprintSHA256(wrongPublic), "ssh-copy-id")
	})
	t.Run("nothing to offer", func(t *testing.T) {
		wantKind(t, base, NoKey, "SSH_AUTH_SOCK is not set", "~/.ssh/id_ed25519", "ssh-keygen")
	})
	t.Run("default file", func(t *testing.T) {
		if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh", "id_ecdsa"), []byte(plain), 0o600); err != nil {
			t.Fatal(err)
		}
		connects(t, func(*Config) {})
	})
	t.Run("agent", func(t *testing.T) {
		ring := agent.NewKeyring()
		// Thirteen keys, the right one last: sshd would end a connection after the sixth.
		for range 12 {
			_, private := newSigner(t)
			if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := ssh.ParseRawPrivateKeyWithPassphrase([]byte(locked), []byte("s3cret phrase"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: raw}); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", t.TempDir())
		t.Setenv("SSH_AUTH_SOCK", serveAgent(t, ring))
		before := s.logins.Load()
		connects(t, func(*Config) {})
		if n := s.logins.Load() - before; n > 3 {
			t.Errorf("%d connections for 13 keys", n)
		}
		// An encrypted key file without passphrase is served by the agent, and it alone is offered.
		before = s.logins.Load()
		connects(t, func(c *Config) { c.PrivateKeyFile = file })
		if n := s.logins.Load() - before; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func serveAgent(t *testing.T, ring agent.Agent) string {
	t.Helper()
	return listenUnix(t, func(conn net.Conn) { go func() { _ = agent.ServeAgent(ring, conn) }() })
}

// listenUnix accepts connections on a socket, hands them to talk, and returns its path.
func listenUnix(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sshx") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "s")) //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	accept(t, listener, talk)
	return listener.Addr().String()
}

// accept hands connections to talk, one after the other, until the test ends.
func accept(t *testing.T, listener net.Listener, talk func(net.Conn)) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			talk(conn)
		}
	}()
}

// listen accepts connections and hands them to talk.
func listen(t *testing.T, talk func(net.Conn)) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	accept(t, listener, func(conn net.Conn) {
		talk(conn)
		t.Cleanup(func() { _ = conn.Close() })
	})
	return portOf(listener)
}

func TestUnreachable(t *testing.T) {
	isolate(t)
	key, _ := newKey(t, "")
	base := Config{Host: "127.0.0.1", User: "spark", PrivateKey: key, HostKey: "SHA256:AAAA", Timeout: 300 * time.Millisecond}
	t.Run("refused", func(t *testing.T) {
		config := base
		config.Port = listen(t, func(net.Conn) {})
		closed, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
		if err != nil {
			t.Fatal(err)
		}
		config.Port = portOf(closed)
		_ = closed.Close()
		failure := wantKind(t, config, Refused, "dial tcp", "connection refused", "nothing listens")
		if !errors.Is(failure.Err, syscall.ECONNREFUSED) {
			t.Errorf("cause lost: %v", failure.Err)
		}
	})
	t.Run("no such name", func(t *testing.T) {
		config := base
		config.Host, config.Timeout = "spark.invalid", 5*time.Second
		wantKind(t, config, NameNotFound, "does not resolve")
	})
	t.Run("silent", func(t *testing.T) {
		config := base
		config.Port = listen(t, func(net.Conn) {})
		start := time.Now()
		failure := wantKind(t, config, TimedOut, "handshake", "within 300ms")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %s", took)
		}
		if !errors.Is(failure.Err, os.ErrDeadlineExceeded) {
			t.Errorf("cause lost: %v", failure.Err)
		}
	})
	t.Run("another protocol", func(t *testing.T) {
		for _, end := range []bool{true, false} {
			config := base
			config.Port = listen(t, func(conn net.Conn) {
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				if end {
					_ = conn.Close()
				}
			})
			wantKind(t, config, NotSSH, "HTTP/1.1 400")
		}
	})
	t.Run("closes at once", func(t *testing.T) {
		config := base
		config.Port = listen(t, func(conn net.Conn) { _ = conn.Close() })
		wantKind(t, config, Busy, "MaxStartups", "times")
	})
	t.Run("cancelled", func(t *testing.T) {
		config := base
		config.Timeout = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		config.Port = listen(t, func(net.Conn) { cancel() })
		start := time.Now()
		_, err := Dial(ctx, config)
		if !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
	t.Run("caller's deadline", func(t *testing.T) {
		config := base
		config.Timeout = time.Minute
		config.Port = listen(t, func(net.Conn) {})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := Dial(ctx, config)
		var failure *Error
		if !errors.As(err, &failure) || failure.Kind != TimedOut || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
