package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentConn is the conversation with an SSH agent, begun when it is first needed. It may be closed at any
// time, also while it is asked.
type agentConn struct {
	socket string // empty: there is no agent

	mutex   sync.Mutex
	conn    net.Conn
	closed  bool
	signers []ssh.Signer
}

// agentSocket says where the agent is: IdentityAgent of ssh_config, or else SSH_AUTH_SOCK. Empty means nowhere.
func agentSocket(configured string, names tokens) (string, error) {
	switch {
	case configured == "" || configured == "SSH_AUTH_SOCK":
		return os.Getenv("SSH_AUTH_SOCK"), nil
	case strings.EqualFold(configured, "none"):
		return "", nil
	case strings.HasPrefix(configured, "$") && !strings.HasPrefix(configured, "${"):
		return os.Getenv(configured[1:]), nil
	}
	socket, err := names.expand(configured, true)
	if err != nil {
		return "", fmt.Errorf("agent skipped: %w", err)
	}
	return socket, nil
}

var errNoAgent = errors.New("SSH_AUTH_SOCK is not set")

// list gives the agent's keys, asked for once.
func (a *agentConn) list(ctx context.Context) ([]ssh.Signer, error) {
	if a.socket == "" {
		return nil, errNoAgent
	}
	if a.signers != nil {
		return a.signers, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", a.socket)
	if err != nil {
		return nil, &keyProblem{AgentFailed, err}
	}
	a.mutex.Lock()
	a.conn = conn
	closed := a.closed
	a.mutex.Unlock()
	if closed {
		_ = conn.Close()
	}
	// The agent's protocol has no time limit of its own: one that hangs is cut off here.
	stop := context.AfterFunc(ctx, a.close)
	defer stop()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, &keyProblem{AgentFailed, fmt.Errorf("the agent at %s does not answer as one: %w", a.socket, err)}
	}
	a.signers = append([]ssh.Signer{}, signers...) // not nil: an agent without keys is not asked again
	return a.signers, nil
}

// close ends the conversation; whoever waits for the agent is woken.
func (a *agentConn) close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.closed = true
	if a.conn != nil {
		_ = a.conn.Close()
	}
}

// addAgent offers what the agent holds. An agent that does not answer is noted, not fatal.
func (ids *identities) addAgent(ctx context.Context, certificates []certificate) {
	signers, err := ids.agent.list(ctx)
	if err != nil {
		ids.pass("agent skipped: "+err.Error(), err)
		return
	}
	if len(signers) == 0 {
		ids.pass("agent skipped: it holds no keys", nil)
	}
	for _, signer := range signers {
		label := "agent key"
		if key, ok := signer.PublicKey().(*agent.Key); ok && key.Comment != "" {
			label += " (" + key.Comment + ")"
		}
		ids.add(parsedSigner(signer), label, certificates)
	}
}

// fromAgent is the agent's signer for a key, nil if it has none. A certificate for the key that the agent
// holds is offered at once.
func (ids *identities) fromAgent(ctx context.Context, public ssh.PublicKey) ssh.Signer {
	if public == nil {
		return nil
	}
	// Without an agent the caller reports the key that cannot be used, which is the user's actual problem.
	signers, err := ids.agent.list(ctx)
	if err != nil {
		return nil
	}
	var plain ssh.Signer
	for _, signer := range signers {
		signer = parsedSigner(signer)
		cert, certified := signer.PublicKey().(*ssh.Certificate)
		switch {
		case certified && sameKey(cert.Key, plainKey(public)):
			ids.offer(signer, "agent certificate")
		case !certified && sameKey(signer.PublicKey(), plainKey(public)):
			plain = signer
		}
	}
	return plain
}

// parsedSigner gives an agent's signer the key type that the rest of the library looks for: the agent's own
// does not show that it is a certificate.
func parsedSigner(signer ssh.Signer) ssh.Signer {
	key, err := ssh.ParsePublicKey(signer.PublicKey().Marshal())
	multi, ok := signer.(ssh.AlgorithmSigner)
	if err != nil || !ok {
		return signer
	}
	return parsedKeySigner{multi, key}
}

// parsedKeySigner is a signer with its key taken apart.
type parsedKeySigner struct {
	ssh.AlgorithmSigner
	key ssh.PublicKey
}

// PublicKey implements ssh.Signer.
func (s parsedKeySigner) PublicKey() ssh.PublicKey { return s.key }
