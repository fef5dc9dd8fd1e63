package sshx

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
	// NotSSH: something listens, but it speaks another protocol or version.
	NotSSH
	// UnknownHostKey: the host is in no known_hosts file.
	UnknownHostKey
	// ChangedHostKey: the host presents another key than the trusted one.
	ChangedHostKey
	// RevokedHostKey: the key is marked @revoked.
	RevokedHostKey
	// AuthFailed: no key was accepted for the user.
	AuthFailed
	// NoKey: there was no private key to offer at all.
	NoKey
	// ForwardingForbidden: sshd refuses streamlocal or TCP forwarding.
	ForwardingForbidden
	// ConnectFailed: forwarding is allowed, but nothing answered behind it.
	ConnectFailed
	// Lost: the connection broke or the peer stopped answering.
	Lost
	// Unreachable: there is no route to the host or its network.
	Unreachable
	// Busy: the connection was closed before sshd said its name, again and again: MaxStartups is used up, or an
	// access list refuses this machine.
	Busy
	// Penalised: sshd refuses this machine for a while (PerSourcePenalties, OpenSSH 9.8 and later).
	Penalised
	// NoAlgorithm: the two sides have no algorithm in common.
	NoAlgorithm
	// KeyEncrypted: the private key needs a passphrase, and none was given.
	KeyEncrypted
	// WrongPassphrase: the passphrase does not open the private key.
	WrongPassphrase
	// KeyUnreadable: the private key's file is missing or cannot be read.
	KeyUnreadable
	// KeyMalformed: the private key is not one, or of a type that is not known.
	KeyMalformed
	// AgentFailed: the SSH agent cannot be reached or does not answer.
	AgentFailed
	// BadCertificate: the user certificate is expired, for another user or key, or none at all.
	BadCertificate
	// NoSession: sshd opens no session (MaxSessions) or does not start the command.
	NoSession
	// BadSettings: what was configured makes no sense: a jump host, a pin, a policy, ssh_config.
	BadSettings
	// JumpFailed: a jump host was reached, but cannot reach the next host.
	JumpFailed
	// ProxyFailed: the ProxyCommand of ssh_config gave no connection.
	ProxyFailed
)

// Error is a failed connection or channel.
type Error struct {
	Kind Kind
	// Host, Port, User as tried; Step is what was done: "dial", "handshake", "open channel".
	Host string
	Port int
	User string
	Step string
	// Address is what ssh_config made of the host, if that is something else.
	Address string
	// Name is the host as known_hosts spells it.
	Name string
	// Local says that the host is this machine, reached without SSH.
	Local bool
	// Behind is the host that was to be reached: then Host is a jump host on the way to it.
	Behind string
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
