package sshx

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// trust decides whether a host key is the right one. It only reads: nothing is ever written to a
// known_hosts file.
type trust struct {
	host        string // what a host certificate must name
	name        string // as known_hosts spells it: "host" or "[host]:port"
	bare        string // the name without its port, which ssh takes too; empty if there is none
	keys        []knownKey
	files       []string // as looked at, for messages
	pinned      ssh.PublicKey
	fingerprint string // "SHA256:…"
	policy      string
	shared      *Shared
}

// newTrust reads the pin, or else the known_hosts files that exist. A host key alias replaces name and
// port, as for ssh.
func newTrust(config Config, found settings, host string, port int, names tokens) (*trust, error) {
	t := &trust{host: strings.ToLower(host), name: knownName(host, port), policy: policyOf(config, found), shared: config.Shared}
	switch {
	case found.hostKeyAlias != "":
		t.host = strings.ToLower(found.hostKeyAlias)
		t.name = t.host
	case t.name != t.host:
		t.bare = t.host
	}
	if !slices.Contains([]string{HostKeyStrict, HostKeyAcceptNew, HostKeyOff}, t.policy) {
		return nil, fmt.Errorf("the host key policy %q is none of %s, %s and %s", t.policy, HostKeyStrict, HostKeyAcceptNew, HostKeyOff)
	}
	if pin := strings.TrimSpace(config.HostKey); pin != "" {
		return t, t.pin(pin)
	}
	var err error
	if t.keys, err = revokedKeys(found.revokedHostKeys, names); err != nil && t.policy != HostKeyOff {
		return nil, err
	}
	for _, file := range knownHostsFiles(config, found) {
		path, err := expand(file)
		if err != nil {
			return nil, err
		}
		keys, err := readKnownHosts(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			t.files = append(t.files, file+" (missing)")
			continue
		case err != nil && t.policy != HostKeyOff:
			return nil, fmt.Errorf("reading known_hosts: %w", err)
		}
		t.files = append(t.files, file)
		t.keys = append(t.keys, keys...)
	}
	if key := t.shared.acceptedKey(t.name); key != nil {
		t.keys = append(t.keys, knownKey{patterns: []string{t.name}, key: key, place: "accepted earlier in this run"})
	}
	return t, nil
}

// policyOf is the policy of the Config, or else what ssh_config says.
func policyOf(config Config, found settings) string {
	if config.HostKeyPolicy != "" {
		return config.HostKeyPolicy
	}
	switch strings.ToLower(found.hostKeyChecking) {
	case "accept-new":
		return HostKeyAcceptNew
	case "no", "off", "false":
		return HostKeyOff
	}
	return HostKeyStrict
}

func knownHostsFiles(config Config, found settings) []string {
	if len(config.KnownHostsFiles) > 0 {
		return config.KnownHostsFiles
	}
	users, global := found.userKnownHosts, found.globalKnownHosts
	if users == nil {
		users = []string{"~/.ssh/known_hosts"}
	}
	if global == nil {
		global = []string{"/etc/ssh/ssh_known_hosts"}
	}
	return slices.DeleteFunc(slices.Concat(users, global), func(file string) bool {
		return strings.EqualFold(file, "none") || filepath.Clean(file) == "/dev/null"
	})
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

// about are the lines that name a host.
func (t *trust) about(name string) (found []knownKey) {
	if name == "" {
		return nil
	}
	for _, known := range t.keys {
		if known.names(name) {
			found = append(found, known)
		}
	}
	return found
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
	var known []string
	for _, line := range slices.Concat(t.about(t.name), t.about(t.bare)) {
		switch line.marker {
		case markerAuthority:
			// The authority's key type says nothing about the type of the keys that it signed.
			first = certs
		case "":
			known = append(known, algorithmsOf(line.key.Type())...)
		}
	}
	known = slices.DeleteFunc(known, func(a string) bool { return !slices.Contains(supported, a) })
	return ordered(slices.Concat(first, known, []string{ssh.KeyAlgoED25519}), plain)
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
		if sameKey(key, t.pinned) {
			return nil
		}
		return &Error{Kind: ChangedHostKey, Offered: offered, Trusted: []string{describeKey(t.pinned) + " (pinned)"}}
	case t.policy == HostKeyOff:
		return nil
	}
	rejected := t.judge(key)
	if rejected != nil && rejected.Kind == UnknownHostKey && t.policy == HostKeyAcceptNew {
		earlier := t.shared.accept(t.name, plainKey(key))
		if earlier == nil || sameKey(earlier, plainKey(key)) {
			return nil
		}
		rejected.Kind, rejected.Trusted = ChangedHostKey, []string{describeKey(earlier) + " (accepted earlier in this run)"}
	}
	if rejected != nil {
		rejected.Offered, rejected.KnownHosts, rejected.Name = offered, t.files, t.name
	}
	return rejected
}

// judge applies the rules of ssh. What the lines for the host and port do not decide, those for the bare name
// may allow, but not forbid: another server of the host answers there.
func (t *trust) judge(key ssh.PublicKey) *Error {
	lines := t.about(t.name)
	rejected := t.judgeBy(lines, key)
	decided := slices.ContainsFunc(lines, func(line knownKey) bool {
		return line.marker == "" && line.key.Type() == plainKey(key).Type()
	})
	if rejected == nil || rejected.Kind == RevokedHostKey || decided || t.bare == "" {
		return rejected
	}
	if bare := t.judgeBy(t.about(t.bare), key); bare == nil || bare.Kind == RevokedHostKey {
		return bare
	}
	return rejected
}

// judgeBy goes by some lines: a revoked key never counts; a certificate counts if a trusted authority signed it
// for this host and time, and else like the key inside; a plain key counts if it is listed.
func (t *trust) judgeBy(lines []knownKey, key ssh.PublicKey) *Error {
	cert, certified := key.(*ssh.Certificate)
	for _, line := range lines {
		if line.marker == markerRevoked && (sameKey(line.key, plainKey(key)) || certified && sameKey(line.key, cert.SignatureKey)) {
			return &Error{Kind: RevokedHostKey, Trusted: []string{line.place}}
		}
	}
	var reason error
	if certified {
		if reason = t.certificate(cert, lines); reason == nil {
			return nil
		}
	}
	var others []string
	for _, line := range lines {
		if line.marker != "" {
			continue
		}
		if sameKey(line.key, plainKey(key)) {
			return nil
		}
		others = append(others, describeKey(line.key)+" ("+line.place+")")
	}
	if len(others) > 0 {
		return &Error{Kind: ChangedHostKey, Trusted: others, Err: reason}
	}
	return &Error{Kind: UnknownHostKey, Err: reason}
}

// certificate says why a host certificate does not count; nil if it does.
func (t *trust) certificate(cert *ssh.Certificate, lines []knownKey) error {
	signed := slices.ContainsFunc(lines, func(line knownKey) bool {
		return line.marker == markerAuthority && sameKey(line.key, cert.SignatureKey)
	})
	switch {
	case cert.CertType != ssh.HostCert:
		return errors.New("it shows a user's certificate in place of a host's")
	case !signed:
		return fmt.Errorf("its certificate is signed by %s, which is no trusted authority", describeKey(cert.SignatureKey))
	}
	if err := new(ssh.CertChecker).CheckCert(t.host, cert); err != nil {
		return fmt.Errorf("its certificate is not valid: %w", err)
	}
	return nil
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// plainKey is the key itself, for a certificate the one inside.
func plainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// describeKey is the algorithm and the SHA256 fingerprint; for a certificate, of the key inside.
func describeKey(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(plainKey(key))
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
