package sshx

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// identity is one key to offer, with its name for messages.
type identity struct {
	signer ssh.Signer
	label  string
}

// identities are all keys to offer, in order, and why others were passed over.
type identities struct {
	offers  []identity
	skipped []string
	agent   net.Conn
}

// defaultKeyFiles are tried after the agent when no key was given.
var defaultKeyFiles = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

var (
	errEncrypted       = errors.New("it is encrypted and no passphrase was given")
	errWrongPassphrase = errors.New("the passphrase does not open it")
)

// loadIdentities collects the keys: the given key alone, or else those of the agent, then the
// default files. An explicit key that cannot be used is an error with its cause.
func loadIdentities(ctx context.Context, config Config) (*identities, error) {
	ids := &identities{}
	var err error
	switch {
	case config.PrivateKey != "":
		err = ids.addKey(ctx, []byte(config.PrivateKey), "the given key", "", config.Passphrase)
	case config.PrivateKeyFile != "":
		if strings.Contains(config.PrivateKeyFile, "\n") || strings.Contains(config.PrivateKeyFile, "-----BEGIN") {
			err = errors.New("the key file is not a path but a key; its content belongs into the private key")
			break
		}
		err = ids.addFile(ctx, config.PrivateKeyFile, config.Passphrase)
	default:
		ids.addAgent(ctx)
		for _, file := range defaultKeyFiles {
			if fileErr := ids.addFile(ctx, file, config.Passphrase); fileErr != nil {
				ids.skipped = append(ids.skipped, fmt.Sprintf("key %s skipped: %v", file, fileErr))
			}
		}
	}
	if err != nil {
		ids.close()
		return nil, err
	}
	return ids, nil
}

// close ends the conversation with the agent.
func (ids *identities) close() {
	if ids.agent != nil {
		_ = ids.agent.Close()
	}
}

func (ids *identities) add(signer ssh.Signer, label string) {
	blob := signer.PublicKey().Marshal()
	for _, known := range ids.offers {
		if bytes.Equal(known.signer.PublicKey().Marshal(), blob) {
			return
		}
	}
	ids.offers = append(ids.offers, identity{signer, label + " " + ssh.FingerprintSHA256(signer.PublicKey())})
}

// addFile reads a key file and the certificate beside it, as ssh does.
func (ids *identities) addFile(ctx context.Context, file, passphrase string) error {
	path, err := expand(file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return ids.addKey(ctx, content, "key "+file, path, passphrase)
}

// addKey parses one private key. An encrypted one without passphrase is served by the agent, if
// the agent holds it.
func (ids *identities) addKey(ctx context.Context, content []byte, label, path, passphrase string) error {
	signer, err := parseKey(content, passphrase)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		public := missing.PublicKey
		if public == nil {
			public = readPublic(path)
		}
		if signer = ids.fromAgent(ctx, public); signer == nil {
			return fmt.Errorf("%s: %w", label, errEncrypted)
		}
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	if path != "" {
		if cert, ok := readPublicFile(path + "-cert.pub").(*ssh.Certificate); ok {
			if certified, certErr := ssh.NewCertSigner(cert, signer); certErr == nil {
				ids.add(certified, "certificate of "+label)
			} else {
				ids.skipped = append(ids.skipped, fmt.Sprintf("certificate of %s skipped: %v", label, certErr))
			}
		}
	}
	ids.add(signer, label)
	return nil
}

// addAgent offers what the agent holds. An agent that does not answer is noted, not fatal.
func (ids *identities) addAgent(ctx context.Context) {
	signers, err := ids.agentSigners(ctx)
	if err != nil {
		ids.skipped = append(ids.skipped, "agent skipped: "+err.Error())
		return
	}
	for _, signer := range signers {
		ids.add(signer, "agent key")
	}
}

func (ids *identities) fromAgent(ctx context.Context, public ssh.PublicKey) ssh.Signer {
	if public == nil {
		return nil
	}
	// Without an agent the caller reports the encrypted key, which is the user's actual problem.
	signers, err := ids.agentSigners(ctx)
	if err != nil {
		return nil
	}
	for _, signer := range signers {
		if bytes.Equal(signer.PublicKey().Marshal(), public.Marshal()) {
			return signer
		}
	}
	return nil
}

func (ids *identities) agentSigners(ctx context.Context) ([]ssh.Signer, error) {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, errors.New("SSH_AUTH_SOCK is not set")
	}
	if ids.agent == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		ids.agent = conn
	}
	// The agent's protocol has no time limit of its own: one that hangs is cut off here.
	stop := context.AfterFunc(ctx, ids.close)
	defer stop()
	return agent.NewClient(ids.agent).Signers()
}

// parseKey turns PEM into a signer. Its errors never repeat the content.
func parseKey(content []byte, passphrase string) (ssh.Signer, error) {
	content = append(bytes.TrimSpace(content), '\n')
	signer, err := ssh.ParsePrivateKey(content)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) && passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(content, []byte(passphrase))
		if errors.Is(err, x509.IncorrectPasswordError) {
			return nil, errWrongPassphrase
		}
	}
	switch {
	case err == nil || errors.As(err, &missing):
		return signer, err
	case bytes.HasPrefix(content, []byte("PuTTY-User-Key-File")):
		return nil, errors.New("it is a PuTTY key; export it in OpenSSH format")
	}
	if _, _, _, _, publicErr := ssh.ParseAuthorizedKey(content); publicErr == nil {
		return nil, errors.New("it is a public key; the private key is needed")
	}
	return nil, fmt.Errorf("it is not a private key in PEM: %w", err)
}

func readPublic(path string) ssh.PublicKey {
	if path == "" {
		return nil
	}
	return readPublicFile(path + ".pub")
}

// readPublicFile returns nil when there is no usable public key: it is only an aid.
func readPublicFile(path string) ssh.PublicKey {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return nil
	}
	return key
}
