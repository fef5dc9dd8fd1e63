// Package transfer moves files from one agent to another, over as many connections as pay, each
// proven by a one-time secret. A file is resumed where it broke off, verified by its sha256 on both
// ends, written through to the disk and put in place by a rename: what has its name is whole.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// The limits, where an End sets none.
const (
	defaultConnectTimeout = 20 * time.Second
	defaultStallTimeout   = 10 * time.Second
	// streams is how many connections a transfer uses at most. Digesting and copying cost one core per
	// 0.7 GB/s on each end; the link carries 12 to 25 GB/s, and a node has 20 cores.
	streams = 8
	// tries is how often a file is begun on a new connection after the one before was lost; those that moved
	// enoughMoved bytes do not count.
	tries       = 4
	enoughMoved = 16 << 20
)

// Report takes a transfer's events, one at a time.
type Report func(agent.TransferEvent)

// End is the side of a transfer that is on this node.
type End struct {
	// Folder is how messages call the folder, Real where it lies, User whose account this is.
	Folder, Real, User string
	// Free gives the bytes that can still be written at a path.
	Free func(path string) (int64, error)
	// ConnectTimeout and StallTimeout replace 20 s and 10 s.
	ConnectTimeout, StallTimeout time.Duration
}

func (e End) connectTimeout() time.Duration {
	if e.ConnectTimeout > 0 {
		return e.ConnectTimeout
	}
	return defaultConnectTimeout
}

func (e End) stallTimeout() time.Duration {
	if e.StallTimeout > 0 {
		return e.StallTimeout
	}
	return defaultStallTimeout
}

// patience is the time for an answer for which the peer has to read or write size bytes first: at
// 50 MB/s, a tenth of what the slowest disk of such a node does.
func (e End) patience(size int64) time.Duration {
	return e.stallTimeout() + time.Duration(size/50)*time.Microsecond
}

// Error is a failed transfer with its class, one of the Transfer… constants of package agent.
type Error struct {
	Code    string
	Message string
	Err     error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func failed(code, format string, arguments ...any) *Error {
	err := fmt.Errorf(format, arguments...)
	return &Error{Code: code, Message: err.Error(), Err: err}
}

// fail classifies a failure of a step with a file.
func (e End) fail(step, name string, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	place := path.Join(e.Folder, name)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &Error{agent.TransferDenied, fmt.Sprintf("%s %s as user %s: %v", step, place, e.User, reason(err)), err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{agent.TransferNoSpace, fmt.Sprintf("%s %s: %v", step, place, reason(err)), err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{agent.TransferStalled, fmt.Sprintf("%s %s: the other end made no progress for %s", step, place, e.stallTimeout()), err}
	case files.Escapes(err) && isPath(err):
		return &Error{agent.TransferFailed, fmt.Sprintf("%s %s: its path leaves the folder", step, place), err}
	}
	return &Error{agent.TransferFailed, fmt.Sprintf("%s %s: %v", step, place, err), err}
}

// reason is the system's own word, without the paths that the message has already.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func isPath(err error) bool {
	var pathError *fs.PathError
	var linkError *os.LinkError
	return errors.As(err, &pathError) || errors.As(err, &linkError)
}

// broken says that a connection ended early.
func broken(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, &network)
}

// lost says that a connection broke or stood still, which another connection may not: neither end gave a reason.
func lost(err error) bool {
	var peer *peerError
	return !errors.As(err, &peer) && (errors.Is(err, os.ErrDeadlineExceeded) || broken(err))
}

// ended prefers the reason of a context to the failure that its end caused.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
