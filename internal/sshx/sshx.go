// Package sshx is the SSH connection to one machine: host keys checked, one handshake, many
// channels. Every failure is an [Error] whose Kind has its own sentence and next step.
package sshx

import (
	"context"
	"io"
	"net"
	"time"
)

// Config says how to reach and trust one machine. Zero values mean what ssh does by default.
type Config struct {
	// Host is a name or address, or a name that ssh_config knows; Port its SSH port (0: what ssh_config says,
	// else 22), User the login (empty: what ssh_config says, else the local user).
	Host string
	Port int
	User string
	// PrivateKeyFile is a path; a leading "~/" is the local home. PrivateKey is the key itself, in
	// PEM; it wins over the file. Passphrase opens an encrypted key.
	PrivateKeyFile string
	PrivateKey     string
	Passphrase     string
	// CertificateFile is an OpenSSH certificate for the key; empty means "<key file>-cert.pub", if it is there.
	CertificateFile string
	// ConfigFile is the ssh_config to follow; empty means ~/.ssh/config and /etc/ssh/ssh_config, "none" no file.
	// What is set here wins over it. Followed are Host, Match, Include, HostName, User, Port, AddressFamily,
	// IdentityFile, IdentitiesOnly, IdentityAgent, CertificateFile, ProxyJump, ProxyCommand, HostKeyAlias,
	// StrictHostKeyChecking, UserKnownHostsFile, GlobalKnownHostsFile and RevokedHostKeys (text files). The ssh client evaluates it, if there is
	// one: that runs the commands of Match exec. CanonicalizeHostname and lists of algorithms are not followed.
	ConfigFile string
	// ProxyJump lists jump hosts in order, each "[user@]host[:port]" as for ssh -J; empty means what
	// ssh_config says, "none" alone means a direct connection. Each is checked by the same rules.
	ProxyJump []string
	// HostKeyPolicy is HostKeyStrict (also if empty), HostKeyAcceptNew or HostKeyOff.
	HostKeyPolicy string
	// KnownHostsFiles to trust; empty means ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
	KnownHostsFiles []string
	// HostKey pins one key: an authorized_keys line ("ssh-ed25519 AAAA…") or a "SHA256:…" fingerprint.
	HostKey string
	// Timeout bounds the dial and the handshake together, for each host on the way; 0 means 10 s.
	Timeout time.Duration
	// Dialer opens the TCP connection in place of everything else: ProxyJump, ssh_config or a direct one.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Shared is what this connection has in common with others; nil means that it stands alone.
	Shared *Shared
}

// The policies for a host key that no file knows. A changed or revoked key is refused by all but off.
const (
	// HostKeyStrict refuses an unknown key.
	HostKeyStrict = "strict"
	// HostKeyAcceptNew trusts an unknown host's key for the life of this process, and writes nothing.
	HostKeyAcceptNew = "accept-new"
	// HostKeyOff trusts any key, with a warning.
	HostKeyOff = "off"
)

// Process is a started remote command.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	// Stderr collects the last 4 KiB.
	Stderr func() string
	// Wait returns when the command ended, with its exit code (-1 if it was cut off).
	Wait func() (int, error)
	// Close kills the session.
	Close func() error
}

// Client is one authenticated connection.
type Client interface {
	// Start runs a command. Sessions are limited to 8 at a time (sshd's MaxSessions is 10), and to fewer
	// where sshd allows fewer; more of them wait. The context bounds the start alone, so that a helper can
	// outlive the call that started it; use Run for a command that shall end with its context.
	Start(ctx context.Context, command string) (*Process, error)
	// DialContext opens a channel to "tcp" or "unix" as seen from the machine.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Done is closed when the connection is lost or closed; Err says why.
	Done() <-chan struct{}
	Err() error
	// Warnings are sentences for the user about how the connection was made; usually there are none.
	Warnings() []string
	Close() error
}
