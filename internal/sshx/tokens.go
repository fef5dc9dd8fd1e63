package sshx

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// tokens are the values that ssh_config can name by a percent sign.
type tokens map[byte]string

// newTokens gives those of one host: %n as written, %h and %p as dialled, %r the remote user.
func newTokens(original, host string, port int, remote, alias string) tokens {
	t := tokens{'%': "%", 'n': original, 'h': host, 'p': strconv.Itoa(port), 'r': remote, 'u': localUser(), 'k': alias, 'i': strconv.Itoa(os.Getuid())}
	if alias == "" {
		t['k'] = original
	}
	if home, err := os.UserHomeDir(); err == nil {
		t['d'] = home
	}
	if name, err := os.Hostname(); err == nil {
		t['l'] = name
		t['L'], _, _ = strings.Cut(name, ".")
	}
	return t
}

var environmentToken = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces the tokens, and for a path also "${VARIABLE}" and a leading "~/".
func (t tokens) expand(text string, isPath bool) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", fmt.Errorf("%q ends with a percent sign", text)
		}
		value, ok := t[text[i]]
		if !ok {
			return "", fmt.Errorf("the token %%%c in %q is not supported", text[i], text)
		}
		out.WriteString(value)
	}
	if !isPath {
		return out.String(), nil
	}
	var missing string
	path := environmentToken.ReplaceAllStringFunc(out.String(), func(token string) string {
		name := token[2 : len(token)-1]
		value, ok := os.LookupEnv(name)
		if !ok {
			missing = name
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("%q names the environment variable %s, which is not set", text, missing)
	}
	return expand(path)
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
