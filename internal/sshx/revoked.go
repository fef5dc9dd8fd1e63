package sshx

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// krlMagic begins a binary key revocation list (PROTOCOL.krl of OpenSSH).
const krlMagic = "SSHKRL\n\x00"

var errKRL = errors.New("it is a binary key revocation list, which is read by ssh alone; give a text file with one public key a line, or @revoked lines in known_hosts")

// revokedKeys reads what RevokedHostKeys of ssh_config names: files with one public key a line. As for ssh,
// a file that cannot be read revokes everything.
func revokedKeys(files []string, names tokens) ([]knownKey, error) {
	var keys []knownKey
	for _, file := range files {
		if strings.EqualFold(file, "none") {
			continue
		}
		path, err := names.expand(file, true)
		if err != nil {
			return nil, fmt.Errorf("RevokedHostKeys of ssh_config: %w", err)
		}
		content, err := readFile(path, maxFile)
		if err != nil {
			return nil, fmt.Errorf("RevokedHostKeys of ssh_config: %w", err)
		}
		more, err := parseRevoked(content, path)
		if err != nil {
			return nil, fmt.Errorf("RevokedHostKeys of ssh_config: %s: %w", file, err)
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// parseRevoked reads public keys as they stand in .pub files. One that is not understood is an error: it
// may be the one that counts.
func parseRevoked(content []byte, path string) ([]knownKey, error) {
	if bytes.HasPrefix(content, []byte(krlMagic)) {
		return nil, errKRL
	}
	var keys []knownKey
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("line %d is no public key", number)
		}
		keys = append(keys, knownKey{marker: markerRevoked, patterns: []string{"*"}, key: plainKey(key), place: fmt.Sprintf("%s:%d", path, number)})
	}
	return keys, nil
}
