package weights

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

const (
	// listenTimeout bounds how long a receiver may take to open its listener.
	listenTimeout = 30 * time.Second
	// idleTimeout bounds a transfer without any event from the receiver. The agents cut and resume a
	// stalled stream much earlier; a resumed 119 GB file is digested in about 80 s (1.5 GB/s).
	idleTimeout = 5 * time.Minute
	// reasonTimeout is how long the other end may take to give its own reason after the first failed:
	// a full disk is seen by the receiver, and by the sender only as a broken connection.
	reasonTimeout = 2 * time.Second
)

// TransferError is a copy between two nodes that failed. Finished files stay and are not sent again.
type TransferError struct {
	From, To               string // hosts
	FromAddress, ToAddress string // identity addresses; ToAddress with port once it listens
	// Step is what was tried: "open listener", "send", "receive".
	Step string
	// Code is one of the agent's Transfer… constants.
	Code string
	// Advice is the next step.
	Advice string
	Err    error
}

// Error implements error. The advice is not part of it: who shows the error adds it.
func (e *TransferError) Error() string {
	return fmt.Sprintf("copy weights from %s (%s) to %s (%s): %s: %v", e.From, e.FromAddress, e.To, e.ToAddress, e.Step, e.Err)
}

// Unwrap gives the cause.
func (e *TransferError) Unwrap() error { return e.Err }

// errIdle and errListen are our own reasons to end a transfer.
var (
	errIdle   = fmt.Errorf("no progress for %s", idleTimeout)
	errListen = fmt.Errorf("the receiver opened no listener within %s", listenTimeout)
)

// transfer is one copy between two agents.
type transfer struct {
	Copy
	from, to Host
	meter    *meter
}

// end is how one side of a transfer ended.
type end struct {
	step string
	err  error
}

// run receives on one side, sends on the other, and cancels either when the other fails. It returns
// the digests of the files that arrived, also beside an error.
func (t transfer) run(parent context.Context) (map[string]string, error) {
	address := t.to.Address
	encrypt := t.from.Encrypt || t.to.Encrypt
	fail := func(one end) *TransferError { return t.failed(one, address) }
	secret, err := newSecret()
	if err != nil {
		return nil, fail(end{"make a secret", err})
	}
	target, err := t.to.Machine.Agent(parent)
	if err != nil {
		return nil, err
	}
	source, err := t.from.Machine.Agent(parent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := &watch{digests: map[string]string{}, listening: make(chan string, 1), meter: t.meter, to: t.To}
	watch.idle = time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer watch.idle.Stop()
	t.meter.begin(t.From, t.To)
	defer func() { t.meter.finish(t.To, t.arrived(watch.result()).Bytes()) }()

	ends := make(chan end, 2)
	go func() {
		ends <- end{"receive", target.Receive(ctx, agent.ReceiveRequest{Folder: t.to.Place.Folder, Address: t.to.Address, Secret: secret, Encrypt: encrypt, Files: t.Files}, watch.event)}
	}()
	open := time.NewTimer(listenTimeout)
	defer open.Stop()
	select {
	case address = <-watch.listening:
	case <-open.C:
		cancel(errListen)
		<-ends
		return nil, fail(end{"open listener", errListen})
	case one := <-ends:
		if one.err == nil {
			one.err = errors.New("the receiver ended before it listened")
		}
		return watch.result(), fail(end{"open listener", cause(ctx, one.err)})
	}
	go func() {
		request := agent.SendRequest{Folder: t.from.Place.Folder, Source: t.from.Address, Target: address, Secret: secret, Encrypt: encrypt, Files: t.Files}
		ends <- end{"send", source.Send(ctx, request, func(agent.TransferEvent) {})}
	}()
	if worst := bothEnds(ctx, cancel, ends); worst.err != nil {
		return watch.result(), fail(worst)
	}
	return watch.result(), nil
}

// arrived is the part of the copy whose digests were proved.
func (c Copy) arrived(digests map[string]string) Copy {
	c.Files = slices.DeleteFunc(slices.Clone(c.Files), func(file agent.File) bool { return digests[file.Name] == "" })
	return c
}

// bothEnds waits for both sides and returns the failure that says most.
func bothEnds(ctx context.Context, cancel context.CancelCauseFunc, ends <-chan end) end {
	first := <-ends
	first.err = cause(ctx, first.err)
	if first.err == nil {
		second := <-ends
		second.err = cause(ctx, second.err)
		return second
	}
	timer := time.AfterFunc(reasonTimeout, func() { cancel(first.err) })
	defer timer.Stop()
	second := <-ends
	if second.err != nil && weight(second.err) > weight(first.err) {
		return second
	}
	return first
}

// weight ranks failures: the end that knows why comes before the one that was cut off.
func weight(err error) int {
	switch code := codeOf(err); {
	case errors.Is(err, context.Canceled) && code == "":
		return 0
	case code == "" || code == agent.TransferFailed:
		return 1
	case code == agent.TransferStalled || code == agent.TransferConnect:
		return 2
	default:
		return 3
	}
}

// cause replaces a cancellation by the reason for it.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		if reason := context.Cause(ctx); reason != nil && !errors.Is(reason, context.Canceled) {
			return reason
		}
	}
	return err
}

// codeOf is the agent's class of the failure, or ours.
func codeOf(err error) string {
	var failed *agent.Error
	switch {
	case errors.Is(err, errIdle):
		return agent.TransferStalled
	case errors.As(err, &failed):
		return failed.Code
	}
	return ""
}

// failed makes the error with its next step.
func (t transfer) failed(one end, address string) *TransferError {
	failure := &TransferError{From: t.From, To: t.To, FromAddress: t.from.Address, ToAddress: address, Step: one.step, Code: codeOf(one.err), Err: one.err}
	failure.Advice = t.advice(failure.Code, address)
	return failure
}

// advice is the next step for a class of failure.
func (t transfer) advice(code, address string) string {
	switch code {
	case agent.TransferNoSpace:
		return fmt.Sprintf("The file system of %s on %s is full; this copy needs %d bytes there.", t.to.Place.Folder, t.To, t.Bytes())
	case agent.TransferDenied:
		return fmt.Sprintf("The login user may not write %s on %s, or may not read %s on %s; files that a container wrote belong to root: chown them once.",
			t.to.Place.Folder, t.To, t.from.Place.Folder, t.From)
	case agent.TransferConnect:
		return fmt.Sprintf("Is a firewall between the fabric addresses? %s must reach any TCP port of %s: on %s, `sudo ufw allow from %s`; and check that `ping -I %s %s` answers on %s.",
			t.from.Address, t.to.Address, t.To, t.from.Address, t.from.Address, t.to.Address, t.From)
	case agent.TransferAuth:
		return fmt.Sprintf("Something other than this copy answered at %s: do two machines have the address, or does a second apply run?", address)
	case agent.TransferMismatch:
		return fmt.Sprintf("The file on %s is not what its digest promises, although its size is right: fetch it again there.", t.From)
	case agent.TransferStalled:
		return fmt.Sprintf("The link between %s and %s stands still: a jumbo MTU on one side only does that (`ping -M do -s 8972`), and a bad cable. Finished files stay; apply again goes on from there.",
			t.from.Address, t.to.Address)
	}
	return "Finished files stay; apply again goes on from there."
}

// newSecret is the one-time secret of a transfer, 32 random bytes in hex.
func newSecret() (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw), nil
}

// watch follows the receiver's events.
type watch struct {
	to        string // host
	listening chan string
	meter     *meter
	idle      *time.Timer

	lock    sync.Mutex
	digests map[string]string
}

// event takes one event of the receiver.
func (w *watch) event(event agent.TransferEvent) {
	w.idle.Reset(idleTimeout)
	if event.Listening != "" {
		select {
		case w.listening <- event.Listening:
		default:
		}
	}
	if event.Bytes > 0 {
		w.meter.bytes(w.to, event.Bytes)
	}
	if event.Finished != nil {
		w.lock.Lock()
		w.digests[event.Finished.Name] = event.Finished.SHA256
		w.lock.Unlock()
		w.meter.file(w.to, event.Finished.Name)
	}
}

// result is a copy of the digests so far.
func (w *watch) result() map[string]string {
	w.lock.Lock()
	defer w.lock.Unlock()
	digests := map[string]string{}
	for name, digest := range w.digests {
		if digest != "" {
			digests[name] = digest
		}
	}
	return digests
}
