package sshx

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// TestAcceptNew: the first key of an unknown host counts for the life of the process.
func TestAcceptNew(t *testing.T) {
	isolate(t)
	key, public := newKey(t, "")
	first := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}})
	second := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}})
	// One name, behind which one or the other answers.
	at := func(s *server) Config {
		return Config{
			Host: "spark", User: "me", PrivateKey: key, ConfigFile: "none", HostKeyPolicy: HostKeyAcceptNew, KnownHostsFiles: knownHosts(t),
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
			},
		}
	}
	connects := func(config Config) []string {
		t.Helper()
		c, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.Warnings()
	}
	shared := &Shared{}
	a, b := at(first), at(second)
	a.Shared, b.Shared = shared, shared
	for range 2 {
		if warnings := connects(a); len(warnings) > 0 {
			t.Errorf("warnings: %q", warnings)
		}
	}
	wantKind(t, b, ChangedHostKey, "accepted earlier in this run", ssh.FingerprintSHA256(first.hostKey.PublicKey()))
	b.Shared = &Shared{}
	connects(b)
	b.Shared = nil
	connects(b)
	// What a file says counts, as for a strict policy.
	b.KnownHostsFiles = knownHosts(t, "spark "+string(ssh.MarshalAuthorizedKey(first.hostKey.PublicKey())))
	wantKind(t, b, ChangedHostKey, "known_hosts:1")
	b.KnownHostsFiles = knownHosts(t, "@revoked * "+string(ssh.MarshalAuthorizedKey(second.hostKey.PublicKey())))
	wantKind(t, b, RevokedHostKey)
	// Off takes it all and says so; a pin counts all the same.
	b.HostKeyPolicy = HostKeyOff
	if warnings := connects(b); len(warnings) != 1 || !strings.Contains(warnings[0], "spark is not checked") {
		t.Errorf("warnings: %q", warnings)
	}
	b.HostKey = ssh.FingerprintSHA256(first.hostKey.PublicKey())
	wantKind(t, b, ChangedHostKey, "pinned")
}

// TestJump: over two hosts to a third, each with its own key, and the errors of each name it.
func TestJump(t *testing.T) {
	isolate(t)
	key, public := newKey(t, "")
	options := serverOptions{allowed: []ssh.PublicKey{public}, through: true}
	first, second, target := startServer(t, options), startServer(t, options), startServer(t, options)
	hop := func(s *server) string { return "me@127.0.0.1:" + strconv.Itoa(s.port) }
	known := knownHosts(t, first.line(first.hostKey.PublicKey()), second.line(second.hostKey.PublicKey()), target.line(target.hostKey.PublicKey()))
	config := Config{
		Host: "127.0.0.1", Port: target.port, User: "me", PrivateKey: key, ConfigFile: "none", KnownHostsFiles: known,
		ProxyJump: []string{hop(first), hop(second)}, Shared: &Shared{},
	}
	for range 2 {
		c, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := Run(t.Context(), c, "exit 7", nil); err != nil || out.ExitCode != 7 {
			t.Errorf("%+v, %v", out, err)
		}
		if beside, err := Dial(t.Context(), config); err != nil {
			t.Error(err)
		} else {
			_ = beside.Close()
		}
		if n := second.logins.Load(); n > 2 {
			t.Errorf("%d logins on the jump host", n)
		}
		_ = c.Close()
	}
	config.Shared = nil
	config.KnownHostsFiles = knownHosts(t, first.line(first.hostKey.PublicKey()), target.line(target.hostKey.PublicKey()))
	if failure := wantKind(t, config, UnknownHostKey, "jump host 127.0.0.1", "on the way to it"); failure.Port != second.port {
		t.Errorf("port %d", failure.Port)
	}
	config.KnownHostsFiles, config.Port = known, 1
	wantKind(t, config, JumpFailed, "jump host 127.0.0.1", "127.0.0.1:1", "ssh onwards")
	second.cut()
	config.ProxyJump = []string{hop(first), "me@127.0.0.1:1"}
	wantKind(t, config, JumpFailed, "127.0.0.1:1")
}

// TestJumpKey: what makes another connection has another key, and nothing else has.
func TestJumpKey(t *testing.T) {
	base := Config{Host: "jump", Port: 55300, PrivateKey: "a", ProxyJump: []string{"b"}}
	for name, change := range map[string]func(*Config){
		"port":       func(c *Config) { c.Port = 55301 }, // as characters both are the same
		"user":       func(c *Config) { c.User = "other" },
		"key":        func(c *Config) { c.PrivateKey = "b" },
		"jump hosts": func(c *Config) { c.ProxyJump = []string{"b", "c"} },
		"policy":     func(c *Config) { c.HostKeyPolicy = HostKeyOff },
	} {
		other := base
		change(&other)
		if jumpKey(other) == jumpKey(base) {
			t.Errorf("another %s has the same key", name)
		}
	}
	same := base
	same.Timeout, same.Shared = time.Minute, &Shared{}
	if jumpKey(same) != jumpKey(base) {
		t.Error("the time-out is in the key")
	}
}
