package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// answerTimeout bounds the calls that an engine answers at once: ping, list, inspect. Without it, one
// that is stuck behind systemd's socket would hold a plan for ever.
const answerTimeout = 30 * time.Second

var (
	errSilent   = fmt.Errorf("the engine took the connection and does not answer within %s: it is stuck or still starting (systemctl status docker)", answerTimeout)
	errUnopened = fmt.Errorf("the connection to the engine's socket was not opened within %s", answerTimeout)
)

// short bounds a call that is answered at once; the cause of its end tells how far it came. A
// deadline of the caller's that is earlier ends it with the caller's own cause.
func (d *docker) short(ctx context.Context) (context.Context, context.CancelFunc) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	bounded, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(d.patience, func() {
		if connected.Load() {
			end(errSilent)
		} else {
			end(errUnopened)
		}
	})
	return bounded, func() {
		timer.Stop()
		end(nil)
	}
}

// interrupted is the failure of a call whose context has ended, by the caller or by short.
func interrupted(ctx context.Context, failure *Error) error {
	failure.Err = context.Cause(ctx)
	switch {
	case errors.Is(failure.Err, errSilent):
		failure.Kind = Down
	case errors.Is(failure.Err, errUnopened):
		failure.Kind = Lost
	}
	return failure
}
