//go:build lab

package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/sshtest"
)

// writeConfig puts an ssh_config into the home of the test.
func writeConfig(t *testing.T, lines ...string) {
	t.Helper()
	folder := filepath.Join(os.Getenv("HOME"), ".ssh")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// connections counts those that a server has seen.
func connections(s *sshtest.Server) int { return strings.Count(s.Log(), "Connection from") }

// TestLabJump: one, two and three hosts on the way, given or from ssh_config, each checked by the same rules.
func TestLabJump(t *testing.T) {
	target, key, config := realServer(t, sshtest.Options{})
	first := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{key.Public}})
	second := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{key.Public}})
	hop := func(s *sshtest.Server) string { return s.User + "@" + s.Address() }
	all := []string{target.KnownHosts(t), first.KnownHosts(t), second.KnownHosts(t)}
	t.Run("given", func(t *testing.T) {
		config := config
		config.KnownHostsFiles, config.ProxyJump = all, []string{hop(first), hop(second)}
		c := wantConnection(t, config)
		if !strings.Contains(first.Log(), "Accepted publickey") || !strings.Contains(second.Log(), "Accepted publickey") {
			t.Error("not over both hosts")
		}
		// The end of a jump host is the end of the connection, and says which host it was.
		second.Stop()
		defer second.StartAgain(t)
		select {
		case <-c.Done():
		case <-time.After(15 * time.Second):
			t.Fatal("not noticed")
		}
		if kindOf(c.Err()) != Lost {
			t.Errorf("%v", c.Err())
		}
	})
	t.Run("untrusted", func(t *testing.T) {
		config := config
		config.ProxyJump = []string{hop(first)}
		failure := wantKind(t, config, UnknownHostKey, "jump host 127.0.0.1", first.HostKeys[0].Fingerprint)
		if failure.Port != first.Port || failure.Behind != target.Host {
			t.Errorf("%+v", failure)
		}
	})
	t.Run("down", func(t *testing.T) {
		config := config
		third := sshtest.Start(t, sshtest.Options{})
		third.Stop()
		config.ProxyJump = []string{hop(third)}
		wantKind(t, config, Refused, "jump host", "nothing listens")
	})
	t.Run("cannot reach the target", func(t *testing.T) {
		config := config
		config.KnownHostsFiles, config.ProxyJump, config.Port = all, []string{hop(first)}, 1
		wantKind(t, config, JumpFailed, "jump host", "could not reach the next host", "127.0.0.1:1")
	})
	t.Run("forbids forwarding", func(t *testing.T) {
		config := config
		strict := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{"restrict " + key.Public}})
		config.KnownHostsFiles, config.ProxyJump = append(all, strict.KnownHosts(t)), []string{hop(strict)}
		wantKind(t, config, ForwardingForbidden, "jump host", "port-forwarding")
	})
	t.Run("ssh_config, with a key of the jump host's own", func(t *testing.T) {
		own := sshtest.NewKey(t, sshtest.KeyOptions{})
		other := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{own.Public}})
		writeConfig(t,
			"Host spark", "HostName "+target.Host, fmt.Sprintf("Port %d", target.Port), "User "+target.User, "ProxyJump last",
			"Host last", "HostName "+second.Host, fmt.Sprintf("Port %d", second.Port), "User "+second.User, "ProxyJump first",
			"Host first", "HostName "+other.Host, fmt.Sprintf("Port %d", other.Port), "User "+other.User, "IdentityFile "+own.File,
			"Host circle", "ProxyJump round", "Host round", "ProxyJump circle",
		)
		config := Config{Host: "spark", PrivateKeyFile: key.File, KnownHostsFiles: append(all, other.KnownHosts(t))}
		wantConnection(t, config)
		if !strings.Contains(other.Log(), "Accepted publickey") {
			t.Error("not over the first host")
		}
		config.Host = "circle"
		wantKind(t, config, BadSettings, "circle")
		config.Shared = &Shared{}
		wantKind(t, config, BadSettings, "circle")
		// What is given wins over the file.
		config.Host, config.Port, config.User, config.ProxyJump = target.Host, target.Port, target.User, []string{"none"}
		before := connections(first)
		wantConnection(t, config)
		if connections(first) != before {
			t.Error("a direct connection went over a jump host")
		}
	})
	t.Run("shared", func(t *testing.T) {
		config := config
		config.KnownHostsFiles, config.ProxyJump, config.Shared = all, []string{hop(first)}, &Shared{}
		before := connections(first)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				c, err := Dial(t.Context(), config)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = c.Close() }()
				if _, err := Run(t.Context(), c, "true", nil); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if n := connections(first) - before; n == 0 || n > 2 {
			t.Errorf("%d connections to the jump host for 8 behind it", n)
		}
		if len(config.Shared.jumps) != 0 {
			t.Error("the jump host is still connected")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		config := config
		silent := listen(t, func(net.Conn) {})
		config.ProxyJump, config.Timeout = []string{fmt.Sprintf("u@127.0.0.1:%d", silent)}, time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		if _, err := Dial(ctx, config); !errors.Is(err, context.Canceled) || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestLabConfig: the keywords of ssh_config that are followed, by the ssh client and by our own reading.
func TestLabConfig(t *testing.T) {
	s, key, base := realServer(t, sshtest.Options{})
	known := s.KnownHosts(t)
	alias := sshtest.KnownHosts(t, "my-spark "+s.HostKeys[0].Public)
	agent := sshtest.Agent(t, key)
	place := []string{"HostName " + s.Host, fmt.Sprintf("Port %d", s.Port), "User " + s.User}
	tests := map[string][]string{
		"Host, IdentityFile, UserKnownHostsFile": append(place, "IdentityFile "+key.File, "UserKnownHostsFile "+known),
		"IdentityAgent, HostKeyAlias":            append(place, "IdentityAgent "+agent, "HostKeyAlias my-spark", "UserKnownHostsFile "+alias),
		"StrictHostKeyChecking":                  append(place, "IdentityFile "+key.File, "StrictHostKeyChecking accept-new"),
		"AddressFamily and a name":               append(place[1:], "HostName localhost", "AddressFamily inet", "IdentityFile "+key.File, "StrictHostKeyChecking no"),
		"ProxyCommand":                           append(place, "IdentityFile "+key.File, "UserKnownHostsFile "+known, "ProxyCommand "+proxyProgram(t)+" %h %p"),
	}
	for name, lines := range tests {
		for _, client := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ssh %v", name, client), func(t *testing.T) {
				isolate(t)
				writeConfig(t, append([]string{"Host spark-?"}, lines...)...)
				if !client {
					t.Setenv("PATH", t.TempDir())
				}
				c := wantConnection(t, Config{Host: "spark-1"})
				if warned := len(c.Warnings()) > 0; warned != (name == "AddressFamily and a name") {
					t.Errorf("warnings: %q", c.Warnings())
				}
			})
		}
	}
	t.Run("a broken file warns", func(t *testing.T) {
		isolate(t)
		writeConfig(t, "Nonsense yes", "Port 1", "Match exec true", "User nobody", "Host *", "HostName ignored.invalid")
		config := base
		config.ConfigFile, config.Host = "", s.Host
		_, err := Dial(t.Context(), config)
		if kindOf(err) != NameNotFound {
			t.Errorf("%v", err)
		}
	})
	t.Run("several addresses", func(t *testing.T) {
		config := base
		config.Host, config.HostKey = "localhost", s.HostKeys[0].Fingerprint // ::1 has no server
		wantConnection(t, config)
	})
	t.Run("a ProxyCommand that fails", func(t *testing.T) {
		isolate(t)
		writeConfig(t, "Host spark", "ProxyCommand sh -c 'echo no way through >&2; exit 3'", "IdentityFile "+key.File)
		wantKind(t, Config{Host: "spark", Timeout: time.Second}, ProxyFailed, "no way through", "exit status 3")
	})
}

// proxyProgram is a program that connects its standard input and output to an address.
func proxyProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy")
	script := "#!/bin/bash\nexec 3<>/dev/tcp/$1/$2\n/bin/cat <&3 &\n/bin/cat >&3\nkill $!\n"
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return file
}

// TestLabDeadPeer: a network that goes silent is found in less than 15 s, by the figures that users get.
func TestLabDeadPeer(t *testing.T) {
	s, _, config := realServer(t, sshtest.Options{})
	silent := make(chan struct{})
	config.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, s.Address())
		return &frozen{conn, silent}, err
	}
	c := wantConnection(t, config)
	process, err := c.Start(t.Context(), "sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	close(silent)
	start := time.Now()
	if _, err := process.Wait(); kindOf(err) != Lost {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("found after %s", took)
	}
}
