package sshx

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestRevokedHostKeys: a key that RevokedHostKeys lists is refused wherever it is trusted, and a list that
// cannot be read revokes everything.
func TestRevokedHostKeys(t *testing.T) {
	isolate(t)
	t.Setenv("PATH", t.TempDir()) // without a client: our own reading counts
	key, public := newKey(t, "")
	s := startServer(t, serverOptions{allowed: []ssh.PublicKey{public}})
	other, _ := newSigner(t)
	list := func(content string) string {
		file := filepath.Join(t.TempDir(), "revoked")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	theirs, others := string(ssh.MarshalAuthorizedKey(s.hostKey.PublicKey())), string(ssh.MarshalAuthorizedKey(other.PublicKey()))
	for name, test := range map[string]struct {
		lines, policy string
		want          Kind // -1: connects
		words         []string
	}{
		"no list":               {"RevokedHostKeys none", "", -1, nil},
		"other keys":            {"RevokedHostKeys " + list("# gone\n\n"+others), "", -1, nil},
		"its key":               {"RevokedHostKeys " + list(others+theirs), "", RevokedHostKey, []string{"revoked:2"}},
		"its key, accept-new":   {"RevokedHostKeys " + list(theirs), HostKeyAcceptNew, RevokedHostKey, nil},
		"the second file":       {"RevokedHostKeys " + list(others) + " " + list(theirs), "", RevokedHostKey, nil},
		"no such file":          {"RevokedHostKeys /no/such", "", BadSettings, []string{"RevokedHostKeys of ssh_config", "/no/such"}},
		"a line that is broken": {"RevokedHostKeys " + list(others+"ssh-ed25519 ????\n"), "", BadSettings, []string{"line 2 is no public key"}},
		"a binary list":         {"RevokedHostKeys " + list(krlMagic+"\x00"), "", BadSettings, []string{"binary key revocation list"}},
		"a binary list, off":    {"RevokedHostKeys " + list(krlMagic+"\x00"), HostKeyOff, -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{
				Host: "127.0.0.1", Port: s.port, User: "me", PrivateKey: key, HostKeyPolicy: test.policy,
				KnownHostsFiles: knownHosts(t, s.line(s.hostKey.PublicKey())), ConfigFile: writeFile(t, test.lines+"\n"),
			}
			if test.policy == HostKeyAcceptNew {
				config.KnownHostsFiles = knownHosts(t)
			}
			if test.want != -1 {
				wantKind(t, config, test.want, test.words...)
				return
			}
			c, err := Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		})
	}
}
