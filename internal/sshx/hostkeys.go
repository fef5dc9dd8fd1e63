package sshx

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// trust decides whether a host key is the right one. It only reads: nothing is ever written to a
// known_hosts file.
type trust struct {
	address     string // "host:port", lower case as in known_hosts
	db          *knownhosts.HostKeyDB
	files       []string // as looked at, for messages
	pinned      ssh.PublicKey
	fingerprint string // "SHA256:…"
}

// newTrust reads the pin, or else the known_hosts files that exist.
func newTrust(config Config, address string) (*trust, error) {
	t := &trust{address: strings.ToLower(address)}
	if pin := strings.TrimSpace(config.HostKey); pin != "" {
		return t, t.pin(pin)
	}
	files := config.KnownHostsFiles
	if len(files) == 0 {
		files = []string{"~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}
	}
	var present []string
	for _, file := range files {
		path, err := expand(file)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			t.files = append(t.files, file+" (missing)")
			continue
		}
		t.files = append(t.files, file)
		present = append(present, path)
	}
	db, err := knownhosts.NewDB(present...)
	if err != nil {
		return nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	t.db = db
	return t, nil
}

// pin takes a fingerprint or an authorized_keys line. The text is not repeated in errors: somebody
// may have put a private key here by mistake.
func (t *trust) pin(pin string) error {
	if rest, ok := strings.CutPrefix(pin, "SHA256:"); ok {
		t.fingerprint = "SHA256:" + strings.TrimRight(rest, "=")
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin))
	if err != nil {
		return errors.New(`the pinned host key is neither a "SHA256:…" fingerprint nor a public key line such as "ssh-ed25519 AAAA…"`)
	}
	t.pinned = key
	return nil
}

// algorithms lists the host key algorithms in the order to ask for: those of the trusted keys first
// (else the host may present another of its keys, which looks like a change), then all others, so
// that a host that changed its key type is seen as changed and not as a failed negotiation.
func (t *trust) algorithms() []string {
	supported := ssh.SupportedAlgorithms().HostKeys
	plain := slices.DeleteFunc(slices.Clone(supported), isCertAlgorithm)
	certs := slices.DeleteFunc(slices.Clone(supported), func(a string) bool { return !isCertAlgorithm(a) })
	var first []string
	switch {
	case t.fingerprint != "":
		// What ssh prefers, so that a usual pin matches at the first attempt.
		return ordered([]string{ssh.KeyAlgoED25519}, plain)
	case t.pinned != nil:
		return ordered(algorithmsOf(t.pinned.Type()), plain)
	}
	for _, key := range t.db.HostKeys(t.address) {
		if key.Cert {
			// The authority's key type says nothing about the type of the keys that it signed.
			first = append(first, certs...)
			continue
		}
		first = append(first, algorithmsOf(key.Type())...)
	}
	if len(first) == 0 {
		first = append(first, ssh.KeyAlgoED25519)
	}
	first = slices.DeleteFunc(first, func(a string) bool { return !slices.Contains(supported, a) })
	return ordered(first, plain)
}

// check compares the offered key with the trusted ones; nil means that it is trusted. The returned
// error has its Kind, Offered and Trusted set.
func (t *trust) check(key ssh.PublicKey) *Error {
	offered := describeKey(key)
	switch {
	case t.fingerprint != "":
		if ssh.FingerprintSHA256(key) == t.fingerprint {
			return nil
		}
		return &Error{Kind: ChangedHostKey, Offered: offered, Trusted: []string{t.fingerprint + " (pinned)"}}
	case t.pinned != nil:
		if string(key.Marshal()) == string(t.pinned.Marshal()) {
			return nil
		}
		return &Error{Kind: ChangedHostKey, Offered: offered, Trusted: []string{describeKey(t.pinned) + " (pinned)"}}
	}
	// The name is what counts, as for ssh (CheckHostIP no); the library wants some address as well.
	err := t.db.HostKeyCallback()(t.address, &net.TCPAddr{IP: net.IPv4zero}, key)
	var known *xknownhosts.KeyError
	if cert, ok := key.(*ssh.Certificate); ok && err != nil && !errors.As(err, &known) {
		// As ssh does: without a trusted authority for it, a certificate counts as the key inside.
		if plain := t.check(cert.Key); plain == nil || plain.Kind != UnknownHostKey {
			return plain
		}
		return &Error{Kind: UnknownHostKey, Offered: offered, KnownHosts: t.files, Err: err}
	}
	var revoked *xknownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return &Error{Kind: RevokedHostKey, Offered: offered, KnownHosts: t.files, Trusted: []string{place(revoked.Revoked)}, Err: err}
	case errors.As(err, &known) && len(known.Want) > 0:
		var trusted []string
		for _, want := range known.Want {
			trusted = append(trusted, describeKey(want.Key)+" ("+place(want)+")")
		}
		return &Error{Kind: ChangedHostKey, Offered: offered, Trusted: trusted, KnownHosts: t.files, Err: err}
	default:
		return &Error{Kind: UnknownHostKey, Offered: offered, KnownHosts: t.files, Err: err}
	}
}

func place(key xknownhosts.KnownKey) string { return fmt.Sprintf("%s:%d", key.Filename, key.Line) }

// describeKey is the algorithm and the SHA256 fingerprint; for a certificate, of the key inside.
func describeKey(key ssh.PublicKey) string {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Type() + " " + ssh.FingerprintSHA256(cert.Key)
	}
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}

// algorithmsOf are the signature algorithms of a key type: RSA keys sign with SHA-2 (RFC 8332).
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

func isCertAlgorithm(algorithm string) bool {
	return strings.HasSuffix(algorithm, "-cert-v01@openssh.com")
}

// ordered puts first before the rest, without repeats.
func ordered(first, rest []string) []string {
	var all []string
	for _, a := range slices.Concat(first, rest) {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// expand resolves a leading "~/" to the local home.
func expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}
