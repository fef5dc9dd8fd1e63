package sshx

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Error implements error: one sentence that says what was seen on which host.
func (e *Error) Error() string {
	text := "host " + e.Host + ": " + e.sentence()
	if e.Err == nil {
		return text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// RefusedThere says that the machine was reached and what was asked for there did not take the
// connection.
func (e *Error) RefusedThere() bool { return e.Kind == ConnectFailed }

// Is makes errors.Is(err, net.ErrClosed) true for every lost connection, for callers that need not
// know SSH.
func (e *Error) Is(target error) bool { return e.Kind == Lost && target == net.ErrClosed }

// sentence is what happened, to be followed by the cause.
func (e *Error) sentence() string {
	switch e.Kind {
	case NameNotFound:
		return "the name does not resolve"
	case UnknownHostKey:
		return fmt.Sprintf("its host key %s is not trusted: no known_hosts file has an entry for %s (read: %s)",
			e.Offered, e.target(), list(e.KnownHosts))
	case ChangedHostKey:
		return fmt.Sprintf("it presents the host key %s, but the trusted key is %s", e.Offered, list(e.Trusted))
	case RevokedHostKey:
		return fmt.Sprintf("its host key %s is marked as revoked in %s", e.Offered, list(e.Trusted))
	case AuthFailed:
		return fmt.Sprintf("no key was accepted for user %q (tried: %s)", e.User, list(e.Tried))
	case NoKey:
		return fmt.Sprintf("there is no private key to offer for user %q (looked at: %s)", e.User, list(e.Tried))
	case NotSSH:
		return fmt.Sprintf("port %d does not speak SSH as expected", e.Port)
	case ForwardingForbidden:
		return "sshd forbids the forwarding"
	case Lost:
		return "the SSH connection was lost"
	case TimedOut:
		return fmt.Sprintf("port %d gave no answer in time (%s)", e.Port, e.Step)
	case Refused, Unreachable, ConnectFailed, Other:
		return e.Step + " failed"
	}
	return e.Step + " failed"
}

// Advice is the likely cause with its evidence and the next step.
func (e *Error) Advice() string {
	switch e.Kind {
	case NameNotFound:
		return fmt.Sprintf("The resolver of this machine does not know %q. Check the spelling, the DNS or /etc/hosts entry, or use the address.", e.Host)
	case Refused:
		return fmt.Sprintf("The machine answers, but nothing listens on port %d. Check that sshd runs there (systemctl status ssh) and that the port is right.", e.Port)
	case Unreachable:
		return "This machine has no route to the host. Check that it is powered on, the cable and the VPN, and the address."
	case TimedOut:
		if e.Step == stepDial {
			return "No answer came to the TCP connection: the host is off, the address is wrong, or a firewall drops the packets. Check with ping and ssh from this machine."
		}
		return fmt.Sprintf("The port accepted the connection, but sshd did not finish its part of the %s in time. The host may be overloaded or frozen: check its console.", e.Step)
	case NotSSH:
		return fmt.Sprintf("What listens on port %d closed the connection or spoke another protocol. Check the port; a busy sshd also does this when MaxStartups is exceeded, or when it blocks this address.", e.Port)
	case UnknownHostKey:
		return fmt.Sprintf("Compare %s with the host's own key (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on its console), then connect once by hand (%s), add the line that %s prints, or set host_key to the fingerprint.",
			e.Offered, e.command("ssh"), e.command("ssh-keyscan"))
	case ChangedHostKey:
		return fmt.Sprintf("The host offers %s where %s is trusted: it was installed anew, another machine has its address, or somebody is in between. If the new key is right, run %s and accept it, or change host_key.",
			e.Offered, list(e.Trusted), e.command("ssh-keygen -R"))
	case RevokedHostKey:
		return "An administrator marked this key with @revoked, so the host must not be trusted with it. Give the host a new key, or ask who revoked it."
	case AuthFailed:
		return e.authAdvice()
	case NoKey:
		return "Name a private key file without a passphrase (private_key_file), start an SSH agent that holds the key, or create ~/.ssh/id_ed25519 with ssh-keygen."
	case ForwardingForbidden:
		return "The sshd configuration (AllowTcpForwarding, AllowStreamLocalForwarding, DisableForwarding) or a restriction on the key in authorized_keys forbids it. Allow it for this user; add port-forwarding after restrict in authorized_keys."
	case ConnectFailed:
		return "sshd tried and could not open it. For a socket or port: nothing listens there, the login user may not use it, or (for a unix socket) AllowStreamLocalForwarding is off, which sshd reports in the same words. For a session: MaxSessions is used up."
	case Lost:
		return "The host rebooted or froze, or the network between was cut. Check that it is up (uptime shows a reboot) and run again."
	case Other:
		return "See the cause above; ssh -v to the host from this machine shows more."
	}
	return ""
}

func (e *Error) authAdvice() string {
	switch {
	case e.Partial:
		return fmt.Sprintf("The host accepted the key and also wants one of %s, which needs a person. Exempt this user or key from the second factor.", list(e.Methods))
	case len(e.Methods) > 0 && !slices.Contains(e.Methods, "publickey"):
		return fmt.Sprintf("The host takes only %s from user %q, no keys. Set PubkeyAuthentication yes in its sshd configuration.", list(e.Methods), e.User)
	}
	return fmt.Sprintf("User %q on the host has none of these public keys in ~/.ssh/authorized_keys, or the user name is wrong. Add one with %s, or check the host's sshd log for the reason.",
		e.User, e.command("ssh-copy-id"))
}

// target is the host as known_hosts spells it.
func (e *Error) target() string {
	if e.Port == 0 || e.Port == defaultPort {
		return e.Host
	}
	return "[" + e.Host + "]:" + strconv.Itoa(e.Port)
}

// command is a line that the user can copy.
func (e *Error) command(program string) string {
	switch program {
	case "ssh-keygen -R":
		return "`ssh-keygen -R '" + e.target() + "'`"
	case "ssh-keyscan":
		if e.Port != defaultPort {
			return fmt.Sprintf("`ssh-keyscan -p %d %s`", e.Port, e.Host)
		}
		return "`ssh-keyscan " + e.Host + "`"
	}
	if e.Port != defaultPort {
		return fmt.Sprintf("`%s -p %d %s@%s`", program, e.Port, e.User, e.Host)
	}
	return fmt.Sprintf("`%s %s@%s`", program, e.User, e.Host)
}

func list(values []string) string {
	if len(values) == 0 {
		return "nothing"
	}
	return strings.Join(values, ", ")
}
