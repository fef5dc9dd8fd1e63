package sshx

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what OpenSSH hashes host names with
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// knownKey is a line of a known_hosts file.
type knownKey struct {
	marker   string // "", markerAuthority or markerRevoked
	patterns []string
	salt     []byte // of a hashed name; nil for patterns
	hash     []byte
	key      ssh.PublicKey
	place    string // "file:line"
}

const (
	markerAuthority = "@cert-authority"
	markerRevoked   = "@revoked"
)

// maxKnownHosts bounds the reading of a known_hosts file; one with 100 000 hosts has 20 MB.
const maxKnownHosts = 64 << 20

// readKnownHosts reads a file. Lines that are not understood (a key type of a newer OpenSSH, a typing
// error) are passed over, as ssh does; a file of nothing else is an error.
func readKnownHosts(path string) ([]knownKey, error) {
	content, err := readFile(path, maxKnownHosts)
	if err != nil {
		return nil, err
	}
	return parseKnownHosts(content, path)
}

func parseKnownHosts(content []byte, path string) ([]knownKey, error) {
	var keys []knownKey
	var failed error
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		key, err := parseKnownHost(text)
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("%s:%d: %w", path, number, err)
			}
			continue
		}
		key.place = fmt.Sprintf("%s:%d", path, number)
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, failed
	}
	return keys, nil
}

// parseKnownHost reads "[marker] names type key [comment]".
func parseKnownHost(line string) (knownKey, error) {
	var known knownKey
	fields := strings.Fields(line)
	if strings.HasPrefix(fields[0], "@") {
		known.marker, fields = fields[0], fields[1:]
		if known.marker != markerAuthority && known.marker != markerRevoked {
			return knownKey{}, fmt.Errorf("the marker %s is not known", known.marker)
		}
	}
	if len(fields) < 3 {
		return knownKey{}, errors.New("it has no names, key type and key")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil {
		return knownKey{}, fmt.Errorf("its key is not base64: %w", err)
	}
	if known.key, err = ssh.ParsePublicKey(blob); err != nil {
		return knownKey{}, err
	}
	if known.key.Type() != fields[1] {
		return knownKey{}, fmt.Errorf("its key is %s, not %s", known.key.Type(), fields[1])
	}
	hashed, ok := strings.CutPrefix(fields[0], "|1|")
	if !ok {
		known.patterns = strings.Split(strings.ToLower(fields[0]), ",")
		return known, nil
	}
	salt, hash, _ := strings.Cut(hashed, "|")
	if known.salt, err = base64.StdEncoding.DecodeString(salt); err != nil {
		return knownKey{}, fmt.Errorf("its hashed name: %w", err)
	}
	if known.hash, err = base64.StdEncoding.DecodeString(hash); err != nil {
		return knownKey{}, fmt.Errorf("its hashed name: %w", err)
	}
	return known, nil
}

// names says whether the line is about the host, which is spelled as in the file: "host" or "[host]:port".
func (k knownKey) names(name string) bool {
	if k.patterns != nil {
		return matchesPatterns(name, k.patterns)
	}
	mac := hmac.New(sha1.New, k.salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), k.hash)
}

// knownName spells a host as known_hosts does.
func knownName(host string, port int) string {
	host = strings.ToLower(host)
	if port == 0 || port == defaultPort {
		return host
	}
	return fmt.Sprintf("[%s]:%d", host, port)
}
