package sshx

import (
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// counting is an agent that counts how often it is asked for its keys.
type counting struct {
	agent.Agent
	lists atomic.Int32
}

// List implements agent.Agent.
func (c *counting) List() ([]*agent.Key, error) {
	c.lists.Add(1)
	return c.Agent.List()
}

// TestSecondFactor: a key was accepted, so that the agent's other keys are no help and are not tried.
func TestSecondFactor(t *testing.T) {
	isolate(t)
	ring := agent.NewKeyring()
	var allowed []ssh.PublicKey
	for range 3 {
		signer, private := newSigner(t)
		if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
			t.Fatal(err)
		}
		if allowed == nil {
			allowed = append(allowed, signer.PublicKey())
		}
	}
	t.Setenv("SSH_AUTH_SOCK", serveAgent(t, ring))
	s := startServer(t, serverOptions{allowed: allowed, second: true})
	config := Config{Host: "127.0.0.1", Port: s.port, User: "spark", HostKey: ssh.FingerprintSHA256(s.hostKey.PublicKey())}
	if failure := wantKind(t, config, AuthFailed, "accepted the key", "password"); !failure.Partial {
		t.Errorf("%+v", failure)
	}
	if n := s.logins.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestAgentIsAskedOnce also where it has no keys, and several files could be served by it.
func TestAgentIsAskedOnce(t *testing.T) {
	isolate(t)
	ring := &counting{Agent: agent.NewKeyring()}
	t.Setenv("SSH_AUTH_SOCK", serveAgent(t, ring))
	var lines string
	for range 2 {
		locked, _ := newKey(t, "phrase")
		lines += "IdentityFile " + writeFile(t, locked) + "\n"
	}
	config := Config{Host: "127.0.0.1", Port: 1, User: "me", HostKey: "SHA256:AAAA", ConfigFile: writeFile(t, lines)}
	wantKind(t, config, KeyEncrypted, "agent skipped: it holds no keys")
	if n := ring.lists.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
