package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// RefusedThere is implemented by a Dialer's error that means: the machine was reached, and what we
// asked for there did not take the connection.
type RefusedThere interface {
	error
	RefusedThere() bool
}

// fail turns an error of the library into ours. The cause stays reachable by errors.As, also when
// the Dialer gave it.
func (d *docker) fail(ctx context.Context, step string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	failure := &Error{Host: d.host, Step: step, Err: err}
	if ctx.Err() != nil {
		return interrupted(ctx, failure)
	}
	if cause, ok := asDialError(err); ok {
		failure.Err = cause
		d.explain(ctx, failure)
		return failure
	}
	switch {
	case errdefs.IsNotFound(err):
		failure.Message = message(err)
		failure.Err = fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), client.IsErrConnectionFailed(err):
		failure.Kind = Lost
	default:
		failure.Message = message(err)
	}
	return failure
}

// explain classifies a socket that could not be opened.
func (d *docker) explain(ctx context.Context, failure *Error) {
	var there RefusedThere
	switch {
	case errors.Is(failure.Err, os.ErrPermission):
		failure.Kind = Denied
	case errors.As(failure.Err, &there) && there.RefusedThere(),
		errors.Is(failure.Err, syscall.ECONNREFUSED), errors.Is(failure.Err, os.ErrNotExist):
		failure.Kind = Down
	default:
		// The way to the machine failed, not the engine: its own error says it better.
		failure.Kind = Lost
		return
	}
	failure.Message = fmt.Sprintf("no Docker engine answers on %s (%v)", d.socket, failure.Err)
	if failure.Kind == Denied {
		failure.Message = fmt.Sprintf("the login user may not use %s (%v)", d.socket, failure.Err)
	}
	if d.diagnose == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	if kind, sentence := d.diagnose(bounded); kind != Failed && sentence != "" {
		failure.Kind = kind
		failure.Message = fmt.Sprintf("%s (%v)", sentence, failure.Err)
	}
}

// message is the engine's own sentence.
func message(err error) string {
	return strings.TrimPrefix(err.Error(), "Error response from daemon: ")
}

// isGone says that the engine has no such thing.
func isGone(err error) bool { return errors.Is(err, ErrNotFound) }
