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
	// Host is a name or address, Port its SSH port (0 means 22), User the login (empty: the local user).
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
	// What is set here wins over it.
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
	// Timeout bounds the dial and the handshake together; 0 means 10 s.
	Timeout time.Duration
	// Dialer opens the TCP connection, for example another Client's DialContext (a jump host); nil
	// dials directly.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
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

// Kind is a class of connection failures.
type Kind int

// The classes, each with its own sentence and next step.
const (
	Other Kind = iota
	// NameNotFound: the host name does not resolve.
	NameNotFound
	// Refused: nothing listens on the port.
	Refused
	// TimedOut: no answer within the deadline (dial or handshake).
	TimedOut
	// NotSSH: something listens, but the handshake failed before keys were exchanged.
	NotSSH
	// UnknownHostKey: the host is in no known_hosts file.
	UnknownHostKey
	// ChangedHostKey: the host presents another key than the trusted one.
	ChangedHostKey
	// RevokedHostKey: the key is marked @revoked.
	RevokedHostKey
	// AuthFailed: no key was accepted for the user.
	AuthFailed
	// NoKey: there was no usable private key to offer (file missing, unreadable, encrypted, malformed).
	NoKey
	// ForwardingForbidden: sshd refuses streamlocal or TCP forwarding.
	ForwardingForbidden
	// ConnectFailed: forwarding is allowed, but nothing answered behind it.
	ConnectFailed
	// Lost: the connection broke or the peer stopped answering.
	Lost
	// Unreachable: there is no route to the host or its network.
	Unreachable
)

// Error is a failed connection or channel.
type Error struct {
	Kind Kind
	// Host, Port, User as tried; Step is what was done: "dial", "handshake", "open channel".
	Host string
	Port int
	User string
	Step string
	// Offered and Trusted are SHA256 fingerprints with algorithm, for host key failures; a trusted
	// one also names its file and line.
	Offered string
	Trusted []string
	// KnownHosts are the files that were looked at, those that do not exist marked "(missing)".
	KnownHosts []string
	// Tried lists the authentication attempts and what was passed over, with the reason:
	// "key ~/.ssh/id_ed25519 SHA256:…", "agent key SHA256:… (comment)", "key ~/.ssh/id_rsa skipped: …".
	Tried []string
	// Methods are the authentication methods that the host accepts from the user, if it said so;
	// Partial means that it took the key and asks for one of them on top.
	Methods []string
	Partial bool
	Err     error
}

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
	// Start runs a command. Sessions are limited to 8 at a time (sshd's MaxSessions is 10). The
	// context bounds the start alone, so that a helper can outlive the call that started it; use Run
	// for a command that shall end with its context.
	Start(ctx context.Context, command string) (*Process, error)
	// DialContext opens a channel to "tcp" or "unix" as seen from the machine.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Done is closed when the connection is lost or closed; Err says why.
	Done() <-chan struct{}
	Err() error
	Close() error
}
