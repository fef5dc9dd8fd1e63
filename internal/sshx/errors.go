package sshx

import (
	"fmt"
	"net"
	"strings"
)

// Error implements error: one sentence that says what was seen on which host.
func (e *Error) Error() string {
	text := "host " + e.Host
	if e.Address != "" {
		text += " (" + e.Address + ")"
	}
	if e.Behind != "" {
		text = fmt.Sprintf("host %s: the jump host %s on the way to it", e.Behind, strings.TrimPrefix(text, "host "))
	}
	text += ": " + e.sentence()
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
			e.Offered, e.known(), list(e.KnownHosts))
	case ChangedHostKey:
		return fmt.Sprintf("it presents the host key %s, but the trusted key is %s", e.Offered, list(e.Trusted))
	case RevokedHostKey:
		return fmt.Sprintf("its host key %s is marked as revoked in %s", e.Offered, list(e.Trusted))
	case AuthFailed:
		return fmt.Sprintf("no key was accepted for user %q (tried: %s)", e.User, list(e.Tried))
	case BadCertificate:
		return fmt.Sprintf("the certificate does not let user %q in (tried: %s)", e.User, list(e.Tried))
	case NoKey:
		return fmt.Sprintf("there is no private key to offer for user %q (looked at: %s)", e.User, list(e.Tried))
	case KeyEncrypted:
		return "the private key is encrypted" + e.passedOver()
	case WrongPassphrase:
		return "the passphrase is wrong" + e.passedOver()
	case KeyUnreadable:
		return "the private key cannot be read" + e.passedOver()
	case KeyMalformed:
		return "the private key cannot be used" + e.passedOver()
	case AgentFailed:
		return "the SSH agent cannot be used" + e.passedOver()
	case NotSSH:
		return fmt.Sprintf("port %d does not speak SSH as expected", e.Port)
	case Busy:
		return fmt.Sprintf("port %d closed the connection before SSH began", e.Port)
	case Penalised:
		return "sshd refuses connections from here for a while"
	case NoAlgorithm:
		return "the two sides have no common algorithm"
	case NoSession:
		return "no command could be started (" + e.Step + ")"
	case BadSettings:
		return "the connection's settings cannot be used"
	case JumpFailed:
		return "it could not reach the next host (" + e.Step + ")"
	case ProxyFailed:
		return "the ProxyCommand gave no connection"
	case ForwardingForbidden:
		return "sshd forbids the forwarding"
	case Lost:
		return "the SSH connection was lost"
	case TimedOut:
		if e.Step == stepWait {
			return "no session became free in time"
		}
		return fmt.Sprintf("port %d gave no answer in time (%s)", e.Port, e.Step)
	case Refused, Unreachable, ConnectFailed, Other:
		return e.Step + " failed"
	}
	return e.Step + " failed"
}

// passedOver lists the keys that nobody named and that are of no use.
func (e *Error) passedOver() string {
	if len(e.Tried) == 0 {
		return ""
	}
	return " (looked at: " + list(e.Tried) + ")"
}

// known is the host as known_hosts spells it.
func (e *Error) known() string {
	if e.Name != "" {
		return e.Name
	}
	return knownName(e.dialled(), e.Port)
}

// dialled is the name or address that was connected to.
func (e *Error) dialled() string {
	if e.Address != "" {
		return e.Address
	}
	return e.Host
}

// command is a line that the user can copy.
func (e *Error) command(program string) string {
	switch program {
	case "ssh-keygen -R":
		return "`ssh-keygen -R '" + e.known() + "'`"
	case "ssh-keyscan":
		if e.Port != defaultPort {
			return fmt.Sprintf("`ssh-keyscan -p %d %s`", e.Port, e.dialled())
		}
		return "`ssh-keyscan " + e.dialled() + "`"
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
