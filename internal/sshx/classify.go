package sshx

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Steps of a connection, as Error.Step names them.
const (
	stepPrepare   = "prepare"
	stepDial      = "dial"
	stepHandshake = "handshake"
	stepAuth      = "authentication"
	stepChannel   = "open channel"
	stepSession   = "open session"
	stepWait      = "wait for a free session"
	stepCommand   = "command"
)

// wsaConnRefused is what Windows says for ECONNREFUSED; package syscall has no name for it. No
// other system uses the number.
const wsaConnRefused = syscall.Errno(10061)

// dialKind classifies a failed TCP connection.
func dialKind(err error) Kind {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		if dns.IsTimeout {
			return TimedOut
		}
		return NameNotFound
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, wsaConnRefused):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	}
	return Other
}

// What sshd says in place of its banner ("SSH-2.0-…") when it takes no more connections, or none from here.
// The protocol has no code for it (RFC 4253, section 4.2).
const (
	sshBanner       = "SSH-"
	tooManyStartups = "Exceeded MaxStartups"
	notAllowedNow   = "Not allowed at this time"
)

// handshakeKind classifies a handshake that ended with err, after heard had come from the other side. The
// library's errors have few types, so the stage (a banner came, the host key was trusted) says what failed.
func handshakeKind(err error, trusted bool, heard string) (Kind, string) {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case trusted && broken(err):
		return Lost, stepAuth
	case trusted:
		// From here on the library reports a refusal in untyped errors alone: "unable to
		// authenticate", or sshd's own disconnect message ("Too many authentication failures").
		return AuthFailed, stepAuth
	case strings.Contains(heard, notAllowedNow):
		return Penalised, stepHandshake
	case strings.Contains(heard, tooManyStartups), heard == "" && broken(err):
		return Busy, stepHandshake
	case !strings.Contains(heard, sshBanner):
		return NotSSH, stepHandshake
	case errors.As(err, &negotiation):
		return NoAlgorithm, stepHandshake
	case broken(err):
		return Lost, stepHandshake
	}
	return NotSSH, stepHandshake
}

// broken says that the transport failed, as opposed to an answer that we did not like.
func broken(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &network)
}

// openKind classifies a channel that could not be opened.
func openKind(err error) Kind {
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		return Lost
	}
	switch refused.Reason {
	case ssh.Prohibited, ssh.UnknownChannelType:
		// A server without the channel type is as good as one that forbids it.
		return ForwardingForbidden
	case ssh.ConnectionFailed:
		return ConnectFailed
	case ssh.ResourceShortage:
		return Other
	}
	return Other
}

// isInterruption says that a failure is the end of somebody's context and no fault of the host.
func isInterruption(failure *Error) bool {
	return errors.Is(failure.Err, context.Canceled) || errors.Is(failure.Err, context.DeadlineExceeded)
}

// errEnded says that the connection is over; its own error says why.
var errEnded = errors.New("the connection has ended")

// interruptedKind classifies the end of the caller's context: a cancelled one is nobody's failure.
func interruptedKind(ctx context.Context) Kind {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TimedOut
	}
	return Other
}
