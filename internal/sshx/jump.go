package sshx

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jumpHost is one host on the way: "[user@]host[:port]" or "ssh://[user@]host[:port]".
type jumpHost struct {
	user string
	host string
	port int // 0: not given
}

// parseJump reads one entry of a ProxyJump list.
func parseJump(text string) (jumpHost, error) {
	var jump jumpHost
	rest := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "ssh://"), "/")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if jump.user, rest = rest[:at], rest[at+1:]; jump.user == "" {
			return jumpHost{}, fmt.Errorf("the jump host %q has an empty user before @", text)
		}
	}
	jump.host = rest
	host, port, err := net.SplitHostPort(rest)
	switch {
	case err == nil:
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return jumpHost{}, fmt.Errorf("the jump host %q has no valid port after the colon", text)
		}
		jump.host, jump.port = host, int(number)
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		jump.host = rest[1 : len(rest)-1]
	case strings.ContainsAny(rest, "[]"):
		return jumpHost{}, fmt.Errorf("the jump host %q has brackets that do not enclose an address", text)
	}
	// A bare IPv6 address stays as it is: it has more than one colon and no brackets.
	if _, err := netip.ParseAddr(jump.host); err != nil && strings.Contains(jump.host, ":") {
		return jumpHost{}, fmt.Errorf("the jump host %q has colons and is no IPv6 address", text)
	}
	if jump.host == "" || strings.HasPrefix(jump.host, "-") || strings.ContainsFunc(jump.host, notInHost) {
		return jumpHost{}, fmt.Errorf("the jump host %q is not of the form [user@]host[:port]", text)
	}
	return jump, nil
}

// notInHost are the characters of no name or address, whatever the script of the name.
func notInHost(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune("/,[]", r)
}

// parseJumps reads a list of jump hosts, each of which may again be a list with commas, as ssh -J takes
// it. "none" alone is a direct connection.
func parseJumps(list []string) (jumps []jumpHost, direct bool, err error) {
	entries := strings.Split(strings.Join(list, ","), ",")
	if len(entries) == 1 && strings.EqualFold(strings.TrimSpace(entries[0]), "none") {
		return nil, true, nil
	}
	if strings.Join(entries, "") == "" {
		return nil, false, nil
	}
	for _, entry := range entries {
		jump, err := parseJump(entry)
		if err != nil {
			return nil, false, err
		}
		jumps = append(jumps, jump)
	}
	return jumps, false, nil
}

const (
	// maxJumps is how many hosts may lie on the way; more means that they lead in a circle.
	maxJumps = 16
	// jumpPatience is how many time-outs a jump host that somebody else connects to is waited for: it may
	// lie behind others.
	jumpPatience = 3
)

var errCircle = errors.New("the jump hosts lead in a circle: one of them names itself, or a host behind it, as its own ProxyJump in ssh_config")

// over goes over jump hosts: the last of them is reached over the others and opens the connection.
func (d *dialing) over(jumps []jumpHost) {
	last, before := jumps[len(jumps)-1], jumps[:len(jumps)-1]
	config := d.config // the same keys and the same trust, but for the pin, which is of one host
	config.Host, config.Port, config.User, config.HostKey = last.host, last.port, last.user, ""
	config.ProxyJump = nil
	for _, jump := range before {
		config.ProxyJump = append(config.ProxyJump, jump.String())
	}
	var hop *client
	d.arrive = func(ctx context.Context) *Error {
		var failure *Error
		hop, failure = d.reach(ctx, config)
		return failure
	}
	d.open = func(ctx context.Context) (net.Conn, error) {
		conn, err := hop.DialContext(ctx, "tcp", d.target())
		var failure *Error
		if errors.As(err, &failure) {
			return nil, failure.before(d.host)
		}
		return conn, err
	}
}

// reach gives the connection to a jump host, shared with others where there is somebody to share with.
func (d *dialing) reach(ctx context.Context, config Config) (*client, *Error) {
	key := jumpKey(config)
	if len(d.way.behind) >= maxJumps || slices.Contains(d.way.behind, key) {
		return nil, d.fail(BadSettings, stepPrepare, errCircle)
	}
	at := way{hop: true, behind: append(slices.Clone(d.way.behind), key)}
	connect := func(ctx context.Context) (*client, *Error) {
		return dial(ctx, config, liveness{interval: keepaliveInterval, patience: keepalivePatience}, at)
	}
	var hop *client
	var release func()
	var failure *Error
	if d.config.Shared != nil {
		hop, release, failure = d.config.Shared.jump(ctx, key, jumpPatience*d.timeout, connect)
	} else if hop, failure = connect(ctx); failure == nil {
		release = func() { _ = hop.Close() }
	}
	if failure != nil {
		return nil, failure.before(d.host)
	}
	d.release = release
	d.warnings = append(d.warnings, hop.Warnings()...)
	return hop, nil
}

// before is a jump host's failure with the host that lay behind it.
func (e *Error) before(host string) *Error {
	named := *e // others who wait for the same jump host have their own copy
	named.Behind = host
	if named.Kind == ConnectFailed {
		named.Kind = JumpFailed
	}
	return &named
}

// String is the jump host as ssh -J takes it.
func (j jumpHost) String() string {
	text := j.host
	if strings.Contains(text, ":") {
		text = "[" + text + "]"
	}
	if j.user != "" {
		text = j.user + "@" + text
	}
	if j.port != 0 {
		text += ":" + strconv.Itoa(j.port)
	}
	return text
}

// jumpKey names a connection by all that makes it; the private key in it is why it is a hash.
func jumpKey(c Config) string {
	c.Timeout, c.Shared = 0, nil // how long it may take and who else uses it make no other connection
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", c))
	return string(sum[:])
}
