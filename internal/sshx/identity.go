package sshx

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// identity is one key to offer, with its name for messages.
type identity struct {
	signer ssh.Signer
	label  string
}

// identities are all keys to offer, in order, and why others were passed over.
type identities struct {
	agent   agentConn
	offers  []identity
	skipped []string
	// kind is the most telling reason of those that were passed over.
	kind Kind
}

// defaultKeyFiles are tried after the agent when no key was given.
var defaultKeyFiles = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

// keyProblem is a key that cannot be used, with the class of failure that it makes.
type keyProblem struct {
	kind Kind
	err  error
}

// Error implements error.
func (p *keyProblem) Error() string { return p.err.Error() }

// Unwrap gives the cause.
func (p *keyProblem) Unwrap() error { return p.err }

// loadIdentities collects the keys. A key of the Config is the only one to be offered, and an error if it
// cannot be used. Else, and for a jump host as well, these are offered, in this order, so that the right one
// comes early: the keys that ssh_config names for the host; those of the agent (unless IdentitiesOnly); the
// default files.
func loadIdentities(ctx context.Context, config Config, found settings, names tokens, hop bool) (*identities, error) {
	ids := &identities{kind: NoKey}
	socket, err := agentSocket(found.identityAgent, names)
	if err != nil {
		ids.pass(err.Error(), &keyProblem{AgentFailed, err})
	}
	ids.agent.socket = socket
	certificates, err := ids.certificates(config, found, names)
	if err != nil {
		return nil, err
	}
	switch {
	case config.PrivateKey != "":
		err = ids.addKey(ctx, []byte(config.PrivateKey), "the given key", "", config.Passphrase, certificates)
	case config.PrivateKeyFile != "":
		if strings.Contains(config.PrivateKeyFile, "\n") || strings.Contains(config.PrivateKeyFile, "-----BEGIN") {
			err = &keyProblem{KeyUnreadable, errors.New("the key file is not a path but a key; its content belongs into the private key")}
			break
		}
		err = ids.addFile(ctx, config.PrivateKeyFile, config.Passphrase, certificates)
	default:
		ids.addImplicit(ctx, config, found, names, certificates)
	}
	if err != nil {
		ids.close()
		return nil, err
	}
	if hop && len(ids.offers) > 0 {
		ids.addImplicit(ctx, config, found, names, certificates)
	}
	if config.CertificateFile != "" && !hop && !slices.ContainsFunc(ids.offers, isCertified) {
		ids.close()
		return nil, &keyProblem{BadCertificate, fmt.Errorf("the certificate %s is for none of the keys at hand: it certifies the key %s",
			config.CertificateFile, ssh.FingerprintSHA256(certificates[0].cert.Key))}
	}
	return ids, nil
}

// addImplicit collects the keys that nobody named in the Config. Why one cannot be used is noted.
func (ids *identities) addImplicit(ctx context.Context, config Config, found settings, names tokens, certificates []certificate) {
	addFiles := func(files []string) {
		for _, file := range files {
			if err := ids.addFile(ctx, file, config.Passphrase, certificates); err != nil {
				ids.pass(fmt.Sprintf("key %s skipped: %v", file, err), err)
			}
		}
	}
	var configured []string
	for _, file := range found.identityFiles {
		path, err := names.expand(file, true)
		switch {
		case strings.EqualFold(file, "none"):
		case err != nil:
			ids.pass(fmt.Sprintf("key %s skipped: %v", file, err), err)
		default:
			configured = append(configured, path)
		}
	}
	addFiles(configured)
	if !found.identitiesOnly {
		ids.addAgent(ctx, certificates)
	}
	if len(found.identityFiles) == 0 {
		addFiles(defaultKeyFiles)
	}
}

// pass notes why a key is not offered.
func (ids *identities) pass(note string, err error) {
	ids.skipped = append(ids.skipped, note)
	var problem *keyProblem
	if !errors.As(err, &problem) || problem.kind == KeyUnreadable && errors.Is(err, os.ErrNotExist) {
		return
	}
	// An encrypted key says most about what the user meant; a missing agent says least.
	for _, kind := range []Kind{KeyEncrypted, WrongPassphrase, KeyMalformed, KeyUnreadable, AgentFailed} {
		if ids.kind == kind {
			return
		}
		if problem.kind == kind {
			ids.kind = kind
			return
		}
	}
}

// close ends the conversation with the agent.
func (ids *identities) close() { ids.agent.close() }

// add puts a key behind the others, with the certificates that belong to it before it.
func (ids *identities) add(signer ssh.Signer, label string, certificates []certificate) {
	for _, c := range certificates {
		if !sameKey(c.cert.Key, signer.PublicKey()) {
			continue
		}
		if certified, err := ssh.NewCertSigner(c.cert, signer); err == nil {
			ids.offer(certified, fmt.Sprintf("certificate %s of %s", c.label, label))
		}
	}
	ids.offer(signer, label)
}

func (ids *identities) offer(signer ssh.Signer, label string) {
	for _, known := range ids.offers {
		if sameKey(known.signer.PublicKey(), signer.PublicKey()) {
			return
		}
	}
	ids.offers = append(ids.offers, identity{signer, label + " " + ssh.FingerprintSHA256(signer.PublicKey())})
}

// addFile reads a key file and the certificate beside it, as ssh does.
func (ids *identities) addFile(ctx context.Context, file, passphrase string, certificates []certificate) error {
	path, err := expand(file)
	if err != nil {
		return err
	}
	content, err := readFile(path, maxFile)
	if err != nil {
		// The agent may hold the key of which only the public half is a file.
		if signer := ids.fromAgent(ctx, readPublicFile(path+".pub")); signer != nil {
			ids.add(signer, "agent key of "+file, certificates)
			return nil
		}
		return &keyProblem{KeyUnreadable, err}
	}
	if cert, ok := readPublicFile(path + "-cert.pub").(*ssh.Certificate); ok {
		certificates = append(slices.Clone(certificates), certificate{cert, file + "-cert.pub"})
	}
	return ids.addKey(ctx, content, "key "+file, path, passphrase, certificates)
}

// addKey parses one private key. An encrypted one without passphrase, and one of which only the public
// half is given, is served by the agent, if the agent holds it.
func (ids *identities) addKey(ctx context.Context, content []byte, label, path, passphrase string, certificates []certificate) error {
	signer, err := parseKey(content, passphrase)
	if err != nil {
		var public ssh.PublicKey
		var missing *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &missing) && missing.PublicKey != nil:
			public = missing.PublicKey
		case path != "":
			if public = parsePublic(content); public == nil {
				public = readPublicFile(path + ".pub")
			}
		}
		if signer = ids.fromAgent(ctx, public); signer == nil {
			var problem *keyProblem
			if errors.As(err, &problem) && public != nil && strings.HasPrefix(public.Type(), "sk-") {
				problem.err = errors.New("it is bound to a security key, which needs an SSH agent that holds it")
			}
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	ids.add(signer, label, certificates)
	return nil
}

var (
	errEncrypted       = errors.New("it is encrypted and no passphrase was given")
	errWrongPassphrase = errors.New("the passphrase does not open it")
)

// parseKey turns PEM into a signer. Its errors are a [keyProblem] and never repeat the content.
func parseKey(content []byte, passphrase string) (ssh.Signer, error) {
	content = append(bytes.TrimSpace(content), '\n')
	signer, err := ssh.ParsePrivateKey(content)
	var missing *ssh.PassphraseMissingError
	encrypted := errors.As(err, &missing)
	if encrypted && passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(content, []byte(passphrase))
		if errors.Is(err, x509.IncorrectPasswordError) {
			return nil, &keyProblem{WrongPassphrase, errWrongPassphrase}
		}
		encrypted = false
	}
	switch {
	case err == nil:
		return signer, nil
	case encrypted:
		return nil, &keyProblem{KeyEncrypted, errors.Join(errEncrypted, missing)}
	case bytes.HasPrefix(content, []byte("PuTTY-User-Key-File")):
		return nil, &keyProblem{KeyMalformed, errors.New("it is a PuTTY key; export it in OpenSSH format")}
	case bytes.HasPrefix(content, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----")):
		return nil, &keyProblem{KeyMalformed, errors.New("it is encrypted in PKCS #8; rewrite it in OpenSSH format with ssh-keygen -p -f FILE")}
	case parsePublic(content) != nil:
		return nil, &keyProblem{KeyMalformed, errors.New("it is a public key; the private key is needed")}
	}
	return nil, &keyProblem{KeyMalformed, fmt.Errorf("it is not a private key in PEM of a known type: %w", err)}
}

func parsePublic(content []byte) ssh.PublicKey {
	key, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return nil
	}
	return key
}

// readPublicFile returns nil when there is no usable public key: it is only an aid.
func readPublicFile(path string) ssh.PublicKey {
	content, err := readFile(path, maxFile)
	if err != nil {
		return nil
	}
	return parsePublic(content)
}
