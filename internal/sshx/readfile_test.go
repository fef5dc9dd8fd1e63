//go:build unix

package sshx

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestOddFiles: a pipe, a device without an end, a folder or a huge file in place of what is to be read is
// told at once.
func TestOddFiles(t *testing.T) {
	isolate(t)
	t.Setenv("PATH", t.TempDir())
	pipe, huge := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "huge")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, maxKnownHosts+1); err != nil {
		t.Fatal(err)
	}
	key, _ := newKey(t, "")
	for path, words := range map[string]string{pipe: "is no regular file", "/dev/zero": "is no regular file", t.TempDir(): "is no regular file", huge: "over the limit"} {
		for name, test := range map[string]struct {
			set  func(*Config)
			kind Kind
		}{
			"key":         {func(c *Config) { c.PrivateKey, c.PrivateKeyFile = "", path }, KeyUnreadable},
			"certificate": {func(c *Config) { c.CertificateFile = path }, BadCertificate},
			"known_hosts": {func(c *Config) { c.KnownHostsFiles = []string{path} }, BadSettings},
			"ssh_config":  {func(c *Config) { c.ConfigFile = path }, BadSettings},
			"revoked":     {func(c *Config) { c.ConfigFile = writeFile(t, "RevokedHostKeys "+path+"\n") }, BadSettings},
		} {
			t.Run(name+" "+filepath.Base(path), func(t *testing.T) {
				config := Config{Host: "127.0.0.1", Port: 1, User: "me", PrivateKey: key, ConfigFile: "none"}
				test.set(&config)
				begin := time.Now()
				wantKind(t, config, test.kind, words)
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		}
	}
}
