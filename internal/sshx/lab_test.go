//go:build lab

package sshx

import (
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

// The tests with the build tag lab need no lab but a real sshd: each starts its own.

// realServer starts an sshd that lets the key in, and gives a Config that trusts and uses it.
func realServer(t *testing.T, options sshtest.Options) (*sshtest.Server, sshtest.Key, Config) {
	t.Helper()
	isolate(t)
	key := sshtest.NewKey(t, sshtest.KeyOptions{})
	options.AuthorizedKeys = append(options.AuthorizedKeys, key.Public)
	s := sshtest.Start(t, options)
	return s, key, configFor(t, s, key)
}

func configFor(t *testing.T, s *sshtest.Server, key sshtest.Key) Config {
	t.Helper()
	return Config{
		Host: s.Host, Port: s.Port, User: s.User, PrivateKeyFile: key.File,
		KnownHostsFiles: []string{s.KnownHosts(t)}, ConfigFile: "none",
	}
}

// wantConnection dials and runs a command.
func wantConnection(t *testing.T, config Config) Client {
	t.Helper()
	c, err := Dial(t.Context(), config)
	if err != nil {
		var failure *Error
		if errors.As(err, &failure) {
			t.Log(failure.Advice())
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if out, err := Run(t.Context(), c, "echo $((6*7))", nil); err != nil || strings.TrimSpace(string(out.Stdout)) != "42" {
		t.Fatalf("%+v, %v", out, err)
	}
	return c
}

// TestLabErrors provokes each class of failures on a real sshd.
func TestLabErrors(t *testing.T) {
	s, key, base := realServer(t, sshtest.Options{})
	encrypted := sshtest.NewKey(t, sshtest.KeyOptions{Passphrase: "open sesame"})
	stranger := sshtest.NewKey(t, sshtest.KeyOptions{})
	wantConnection(t, base)
	closed, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	tests := map[string]struct {
		change func(t *testing.T, c *Config)
		kind   Kind
		words  []string
	}{
		"no such name":     {func(_ *testing.T, c *Config) { c.Host = "spark.invalid" }, NameNotFound, []string{"spark.invalid", "/etc/hosts"}},
		"nothing listens":  {func(_ *testing.T, c *Config) { c.Port = portOf(closed) }, Refused, []string{"systemctl status ssh"}},
		"unknown host key": {func(t *testing.T, c *Config) { c.KnownHostsFiles = []string{sshtest.KnownHosts(t, "# nothing")} }, UnknownHostKey, []string{s.HostKeys[0].Fingerprint, "ssh-keyscan -p"}},
		"changed host key": {func(t *testing.T, c *Config) {
			c.KnownHostsFiles = []string{sshtest.KnownHosts(t, fmt.Sprintf("[%s]:%d %s", s.Host, s.Port, stranger.Public))}
		}, ChangedHostKey, []string{s.HostKeys[0].Fingerprint, stranger.Fingerprint, "ssh-keygen -R"}},
		"revoked host key": {func(t *testing.T, c *Config) {
			c.KnownHostsFiles = append(c.KnownHostsFiles, sshtest.KnownHosts(t, "@revoked * "+s.HostKeys[0].Public))
		}, RevokedHostKey, []string{"@revoked"}},
		"wrong pin":        {func(_ *testing.T, c *Config) { c.HostKey = stranger.Fingerprint }, ChangedHostKey, []string{"pinned"}},
		"wrong key":        {func(_ *testing.T, c *Config) { c.PrivateKeyFile = stranger.File }, AuthFailed, []string{stranger.Fingerprint, "ssh-copy-id"}},
		"wrong user":       {func(_ *testing.T, c *Config) { c.User = "nobody-of-this-name" }, AuthFailed, []string{"nobody-of-this-name", "the user name is wrong"}},
		"no key":           {func(_ *testing.T, c *Config) { c.PrivateKeyFile = "" }, NoKey, []string{"SSH_AUTH_SOCK is not set", "id_ed25519"}},
		"missing key file": {func(_ *testing.T, c *Config) { c.PrivateKeyFile = "/nonexistent" }, KeyUnreadable, []string{"/nonexistent"}},
		"encrypted key":    {func(_ *testing.T, c *Config) { c.PrivateKeyFile = encrypted.File }, KeyEncrypted, []string{"ssh-add"}},
		"wrong passphrase": {func(_ *testing.T, c *Config) { c.PrivateKeyFile, c.Passphrase = encrypted.File, "open barley" }, WrongPassphrase, []string{"ssh-keygen -y"}},
		"public key":       {func(_ *testing.T, c *Config) { c.PrivateKeyFile = key.File + ".pub" }, KeyMalformed, []string{"public key"}},
		"no such jump":     {func(_ *testing.T, c *Config) { c.ProxyJump = []string{"u@jump.invalid"} }, NameNotFound, []string{"jump host jump.invalid", s.Host}},
		"jump unreadable":  {func(_ *testing.T, c *Config) { c.ProxyJump = []string{"u@"} }, BadSettings, []string{"[user@]host[:port]"}},
		"policy unknown":   {func(_ *testing.T, c *Config) { c.HostKeyPolicy = "maybe" }, BadSettings, []string{"maybe", "accept-new"}},
		"config missing":   {func(_ *testing.T, c *Config) { c.ConfigFile = "/nonexistent/config" }, BadSettings, []string{"/nonexistent/config"}},
		"agent unreachable": {func(t *testing.T, c *Config) {
			c.PrivateKeyFile = ""
			t.Setenv("SSH_AUTH_SOCK", "/nonexistent/agent")
		}, AgentFailed, []string{"/nonexistent/agent", "ssh-add -l"}},
		"agent that is none": {func(t *testing.T, c *Config) {
			c.PrivateKeyFile = ""
			t.Setenv("SSH_AUTH_SOCK", talker(t, "nonsense"))
		}, AgentFailed, []string{"does not answer as one"}},
		"certificate of another key": {func(t *testing.T, c *Config) {
			c.CertificateFile = stranger.Certify(t, stranger, sshtest.CertificateOptions{})
		}, BadCertificate, []string{"is for none of the keys", stranger.Fingerprint}},
		"no certificate": {func(_ *testing.T, c *Config) { c.CertificateFile = key.File + ".pub" }, BadCertificate, []string{"is no OpenSSH certificate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := base
			test.change(t, &config)
			wantKind(t, config, test.kind, test.words...)
		})
	}
}

// talker is a socket that says something and closes.
func talker(t *testing.T, text string) string {
	t.Helper()
	return listenUnix(t, func(conn net.Conn) {
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	})
}

// TestLabServerSays provokes the classes that the server's configuration or the account makes.
func TestLabServerSays(t *testing.T) {
	t.Run("no keys accepted", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{Config: []string{"PubkeyAuthentication no", "PasswordAuthentication yes"}})
		wantKind(t, config, AuthFailed, "takes only password", "PubkeyAuthentication")
	})
	t.Run("second factor", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{Config: []string{"PasswordAuthentication yes", "AuthenticationMethods publickey,password"}})
		wantKind(t, config, AuthFailed, "also wants one of password")
	})
	t.Run("two keys wanted", func(t *testing.T) {
		s, key, config := realServer(t, sshtest.Options{Config: []string{"AuthenticationMethods publickey,publickey"}})
		second := sshtest.NewKey(t, sshtest.KeyOptions{})
		s.Authorize(t, key.Public, second.Public)
		config.PrivateKeyFile = ""
		t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, key, second))
		wantConnection(t, config)
	})
	t.Run("no common algorithm", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{Config: []string{"Ciphers 3des-cbc"}})
		wantKind(t, config, NoAlgorithm, "3des-cbc", "sshd -T")
	})
	t.Run("locked account", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{})
		config.User, _ = sshtest.NewUser(t, sshtest.UserOptions{Locked: true})
		wantKind(t, config, AuthFailed, "account is locked")
	})
	t.Run("no such shell", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{})
		config.User, _ = sshtest.NewUser(t, sshtest.UserOptions{Shell: "/nonexistent/shell"})
		wantKind(t, config, AuthFailed, "without a valid shell")
	})
	t.Run("shell that refuses", func(t *testing.T) {
		// The login works, so it is the command's output that tells: whoever runs one shows it.
		_, _, config := realServer(t, sshtest.Options{})
		config.User, _ = sshtest.NewUser(t, sshtest.UserOptions{Shell: "/usr/sbin/nologin"})
		c, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if out, err := Run(t.Context(), c, "true", nil); err != nil || out.ExitCode != 1 || !strings.Contains(string(out.Stdout), "not available") {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("stopped in the middle", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{})
		// A server that says its name and is gone.
		config.Port = listen(t, func(conn net.Conn) {
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
			_ = conn.Close()
		})
		wantKind(t, config, Lost, "in the middle of the login")
	})
	t.Run("forced command", func(t *testing.T) {
		s, key, config := realServer(t, sshtest.Options{})
		s.Authorize(t, `restrict,command="echo only this" `+key.Public)
		c, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if out, err := Run(t.Context(), c, "echo something else", nil); err != nil || string(out.Stdout) != "only this\n" {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := c.DialContext(t.Context(), "tcp", s.Address()); kindOf(err) != ForwardingForbidden {
			t.Errorf("forwarding: %v", err)
		}
	})
	t.Run("forwarding", func(t *testing.T) {
		s, _, config := realServer(t, sshtest.Options{Config: []string{"AllowTcpForwarding no", "AllowStreamLocalForwarding no"}})
		c := wantConnection(t, config)
		if _, err := c.DialContext(t.Context(), "tcp", s.Address()); kindOf(err) != ForwardingForbidden {
			t.Errorf("tcp: %v", err)
		}
		_, err := c.DialContext(t.Context(), "unix", talker(t, "hello"))
		var failure *Error
		if !errors.As(err, &failure) || failure.Kind != ConnectFailed || !strings.Contains(failure.Advice(), "AllowStreamLocalForwarding") {
			t.Errorf("unix: %v", err)
		}
	})
	t.Run("nothing behind it", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{})
		c := wantConnection(t, config)
		for network, address := range map[string]string{"unix": "/nonexistent/socket", "tcp": "127.0.0.1:1"} {
			if _, err := c.DialContext(t.Context(), network, address); kindOf(err) != ConnectFailed || !strings.Contains(err.Error(), address) {
				t.Errorf("%s: %v", network, err)
			}
		}
	})
	t.Run("no sessions", func(t *testing.T) {
		_, _, config := realServer(t, sshtest.Options{Config: []string{"MaxSessions 0"}})
		c, err := Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Start(t.Context(), "true"); kindOf(err) != NoSession {
			t.Errorf("%v", err)
		}
	})
	t.Run("file of the key open to all", func(t *testing.T) {
		_, key, config := realServer(t, sshtest.Options{})
		if err := os.Chmod(key.File, 0o644); err != nil { //nolint:gosec // what is tested
			t.Fatal(err)
		}
		wantConnection(t, config)
	})
}

// TestLabCertificates: user certificates beside the key, given, and refused with the reason.
func TestLabCertificates(t *testing.T) {
	isolate(t)
	authority, host := sshtest.NewKey(t, sshtest.KeyOptions{}), sshtest.NewKey(t, sshtest.KeyOptions{Type: "ecdsa"})
	hostCertificate := host.Certify(t, authority, sshtest.CertificateOptions{Host: true, Principals: []string{"127.0.0.1"}})
	s := sshtest.Start(t, sshtest.Options{
		UserAuthorities: []sshtest.Key{authority}, HostKeys: []sshtest.Key{host}, HostCertificates: []string{hostCertificate},
	})
	certified := func(t *testing.T, options sshtest.CertificateOptions) (sshtest.Key, string) {
		key := sshtest.NewKey(t, sshtest.KeyOptions{Type: "rsa", Bits: 2048})
		return key, key.Certify(t, authority, options)
	}
	key, certificate := certified(t, sshtest.CertificateOptions{Principals: []string{s.User}})
	base := configFor(t, s, key)
	base.KnownHostsFiles = []string{sshtest.KnownHosts(t, "@cert-authority * "+authority.Public)}
	t.Run("beside the key", func(t *testing.T) { wantConnection(t, base) })
	t.Run("elsewhere", func(t *testing.T) {
		config := base
		config.CertificateFile = filepath.Join(t.TempDir(), "elsewhere")
		if err := os.Rename(certificate, config.CertificateFile); err != nil {
			t.Fatal(err)
		}
		wantConnection(t, config)
		config.CertificateFile = ""
		wantKind(t, config, AuthFailed)
		config.PrivateKey, config.PrivateKeyFile = key.Content(t), ""
		config.CertificateFile = filepath.Join(filepath.Dir(certificate), "moved")
		wantKind(t, config, BadCertificate)
	})
	t.Run("in the agent", func(t *testing.T) {
		key, _ := certified(t, sshtest.CertificateOptions{Principals: []string{s.User}})
		config := base
		config.PrivateKeyFile = ""
		t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, key)) // ssh-add takes the certificate along
		wantConnection(t, config)
	})
	for name, test := range map[string]struct {
		options sshtest.CertificateOptions
		word    string
	}{
		"expired":   {sshtest.CertificateOptions{Principals: []string{s.User}, Validity: "-2h:-1h"}, "expired at"},
		"too early": {sshtest.CertificateOptions{Principals: []string{s.User}, Validity: "+1h:+2h"}, "valid only from"},
		"of others": {sshtest.CertificateOptions{Principals: []string{"somebody"}}, "is for the users somebody"},
	} {
		t.Run(name, func(t *testing.T) {
			key, _ := certified(t, test.options)
			config := base
			config.PrivateKeyFile = key.File
			wantKind(t, config, BadCertificate, test.word, "ssh-keygen -L")
		})
	}
	t.Run("host's expired", func(t *testing.T) {
		expired := host.Certify(t, authority, sshtest.CertificateOptions{Host: true, Principals: []string{"127.0.0.1"}, Validity: "-2h:-1h"})
		s := sshtest.Start(t, sshtest.Options{UserAuthorities: []sshtest.Key{authority}, HostKeys: []sshtest.Key{host}, HostCertificates: []string{expired}})
		key, _ := certified(t, sshtest.CertificateOptions{Principals: []string{s.User}})
		config := base
		config.Port, config.PrivateKeyFile = s.Port, key.File
		wantKind(t, config, UnknownHostKey, "cert has expired")
	})
}

// TestLabManyKeys: an agent with more keys than MaxAuthTries allows.
func TestLabManyKeys(t *testing.T) {
	for _, tries := range []int{1, 3, 6} {
		t.Run(fmt.Sprint(tries), func(t *testing.T) {
			s, key, config := realServer(t, sshtest.Options{Config: []string{fmt.Sprintf("MaxAuthTries %d", tries)}})
			var keys []sshtest.Key
			for range 12 {
				keys = append(keys, sshtest.NewKey(t, sshtest.KeyOptions{}))
			}
			t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, append(keys, key)...))
			config.PrivateKeyFile = ""
			wantConnection(t, config)
			t.Logf("%d connections", strings.Count(s.Log(), "Connection from"))
			// With IdentitiesOnly the agent serves the one key that is named, by its public half alone.
			public := filepath.Join(t.TempDir(), "only")
			if err := os.WriteFile(public+".pub", []byte(key.Public), 0o600); err != nil {
				t.Fatal(err)
			}
			config.ConfigFile = filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(config.ConfigFile, fmt.Appendf(nil, "IdentitiesOnly yes\nIdentityFile %s\n", public), 0o600); err != nil {
				t.Fatal(err)
			}
			before := strings.Count(s.Log(), "Connection from")
			wantConnection(t, config)
			if n := strings.Count(s.Log(), "Connection from") - before; n != 1 {
				t.Errorf("%d connections with the key named", n)
			}
		})
	}
}

// TestLabBusy: 64 logins at once to an sshd that lets two in at a time, and 64 commands on a connection that
// allows three.
func TestLabBusy(t *testing.T) {
	s, _, config := realServer(t, sshtest.Options{Config: []string{"MaxStartups 2:50:4", "MaxSessions 3"}})
	const parallel = 64
	start := time.Now()
	clients := make([]Client, parallel)
	var wait sync.WaitGroup
	for i := range parallel {
		wait.Go(func() {
			var err error
			if clients[i], err = Dial(t.Context(), config); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	t.Logf("%d logins in %s, %d refused", parallel, time.Since(start).Round(time.Millisecond), strings.Count(s.Log(), "past MaxStartups"))
	for _, c := range clients {
		if c != nil {
			defer func() { _ = c.Close() }()
		}
	}
	if t.Failed() {
		return
	}
	c, start := clients[0], time.Now()
	for i := range parallel {
		wait.Go(func() {
			command := fmt.Sprintf("echo %d", i)
			if out, err := Run(t.Context(), c, command, nil); err != nil || strings.TrimSpace(string(out.Stdout)) != fmt.Sprint(i) {
				t.Errorf("%d: %+v, %v", i, out, err)
			}
		})
		wait.Go(func() {
			conn, err := c.DialContext(t.Context(), "tcp", s.Address())
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
	}
	wait.Wait()
	t.Logf("%d commands in %s", parallel, time.Since(start).Round(time.Millisecond))
}
