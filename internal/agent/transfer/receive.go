package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// receiver is the target's side of a transfer.
type receiver struct {
	end      End
	root     *os.Root
	secret   []byte
	encrypt  bool
	progress *progress
	address  string

	lock sync.Mutex
	// units are all, waiting those that no stream has begun, left how many are not in place.
	units   map[string]*unit
	waiting map[string]*unit
	left    int
	// lonely ends the transfer when no sender comes back.
	lonely *time.Timer
	// active is the number of proven connections, seen whether there ever was one.
	active int
	seen   bool
	ended  chan error
}

// Receive listens for the sender of one transfer and takes the files of the request.
func Receive(ctx context.Context, end End, request agent.ReceiveRequest, report Report) error {
	units, err := plan(request.Files)
	if err != nil {
		return err
	}
	secret, err := decodeSecret(request.Secret)
	if err != nil {
		return failed(agent.TransferAuth, "receive into %s: %w", end.Folder, err)
	}
	if err := os.MkdirAll(end.Real, 0o755); err != nil { //nolint:gosec // Other accounts and containers read weights.
		return end.fail("make", "", err)
	}
	root, err := files.OpenFolder(end.Real)
	if err != nil {
		return end.fail("open", "", err)
	}
	defer root.Close() //nolint:errcheck // Every file in it was synced and closed by then.
	r := &receiver{
		end: end, root: root, secret: secret, encrypt: request.Encrypt, progress: &progress{report: report},
		units: map[string]*unit{}, waiting: map[string]*unit{}, left: len(units), ended: make(chan error, 1),
	}
	for _, one := range units {
		r.units[one.name], r.waiting[one.name] = one, one
	}
	if err := r.space(units); err != nil {
		return err
	}
	return ended(ctx, r.run(ctx, request.Address))
}

// space refuses a transfer that does not fit, less what is already there of it.
func (r *receiver) space(units []*unit) error {
	free, err := r.end.Free(r.end.Real)
	if err != nil {
		return r.end.fail("ask for the space of", "", err)
	}
	need := total(units)
	for _, one := range units {
		if info, err := r.root.Stat(partialName(one.name)); err == nil {
			need -= min(info.Size(), one.size)
		}
	}
	if need > free {
		return failed(agent.TransferNoSpace, "%s needs %d more bytes for %d files and has %d free, %d too few",
			r.end.Folder, need, len(units), free, need-free)
	}
	return nil
}

// run listens until all is in place, or something failed; then nothing of it is left.
func (r *receiver) run(ctx context.Context, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return failed(agent.TransferConnect, "listen on %s: %w", address, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	var streams sync.WaitGroup
	defer func() {
		cancel()
		_ = listener.Close()
		streams.Wait()
		stop()
		if r.lonely != nil {
			r.lonely.Stop()
		}
	}()
	r.address = listener.Addr().String()
	r.progress.listening(r.address)
	streams.Go(func() { r.accept(ctx, listener, &streams) })
	nobody := time.NewTimer(r.end.connectTimeout())
	defer nobody.Stop()
	for {
		select {
		case err := <-r.ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-nobody.C:
			if !r.proven() {
				return failed(agent.TransferConnect, "nobody connected to %s within %s", r.address, r.end.connectTimeout())
			}
		}
	}
}

func (r *receiver) proven() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.seen
}

// finish ends the transfer, with nil when all is done. Only the first call counts.
func (r *receiver) finish(err error) {
	select {
	case r.ended <- err:
	default:
	}
}

func (r *receiver) accept(ctx context.Context, listener net.Listener, streams *sync.WaitGroup) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				r.finish(failed(agent.TransferConnect, "listen on %s: %w", r.address, err))
			}
			return
		}
		streams.Go(func() { r.serve(ctx, conn) })
	}
}

// serve takes files from one connection. One that proves nothing is a stranger, and closed.
func (r *receiver) serve(ctx context.Context, conn net.Conn) {
	if r.encrypt {
		secured, err := encryptedReceiver(conn, r.secret)
		if err != nil {
			_ = conn.Close()
			r.finish(failed(agent.TransferFailed, "receive on %s: %w", r.address, err))
			return
		}
		conn = secured
	}
	link := newLink(ctx, conn, r.end.stallTimeout())
	defer link.close()
	err := conn.SetDeadline(time.Now().Add(r.end.connectTimeout()))
	if err == nil {
		err = handshake(conn)
	}
	if err == nil {
		link.key, err = proveReceiver(conn, r.secret, r.accepted)
	}
	switch {
	case errors.Is(err, errWrongSecret):
		r.finish(failed(agent.TransferAuth, "%s connected to %s: %w", conn.RemoteAddr(), r.address, err))
	case errors.Is(err, errNoProof):
	case err != nil:
		r.gone(r.explain("receive into", "", err))
	default:
		r.gone(r.stream(ctx, link))
	}
}

// accepted counts a proven connection. It must be counted before its sender knows, so that no other
// connection seems to be the last one.
func (r *receiver) accepted() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.active++
	r.seen = true
	if r.lonely != nil {
		r.lonely.Stop()
	}
}

// gone counts a proven connection that ended. When the last one ends before all files are in place,
// so does the transfer; but one that was lost may be followed by another.
func (r *receiver) gone(err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.active--
	switch {
	case err != nil && !lost(err):
		r.finish(err)
	case r.active > 0:
	case r.left == 0:
		r.finish(nil)
	case err != nil:
		r.lonely = time.AfterFunc(r.end.connectTimeout(), func() { r.finish(err) })
	default:
		r.finish(failed(agent.TransferFailed, "the sender ended with %d files of %s still to come", r.left, r.end.Folder))
	}
}

// stream takes files until the sender ends.
func (r *receiver) stream(ctx context.Context, link *link) error {
	for {
		header, err := link.receive(r.end.stallTimeout())
		if err != nil {
			return r.explain("receive into", "", err)
		}
		if header.End {
			return nil
		}
		one, err := r.take(ctx, link, header)
		if err == nil {
			err = r.unit(ctx, link, one, header.Modified)
			r.release(one, err)
		}
		if err != nil {
			if ctx.Err() == nil && !lost(err) {
				link.refuse(err)
			}
			return err
		}
	}
}

// take finds the unit that a header announces. A sender that lost its connection may come back before this end
// has noticed: then the older connection is closed and has to let go first.
func (r *receiver) take(ctx context.Context, link *link, header message) (*unit, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	one, known := r.units[header.Name]
	if !known {
		return nil, failed(agent.TransferFailed, "the sender offers %q, which was not asked for", header.Name)
	}
	if header.Size != one.size {
		return nil, failed(agent.TransferMismatch, "the source of %s/%s has %d bytes, %d are expected",
			r.end.Folder, one.name, header.Size, one.size)
	}
	for one.link != nil {
		older, done := one.link, one.done
		r.lock.Unlock()
		_ = older.conn.Close() // Its stream sees it end.
		select {
		case <-done:
		case <-ctx.Done():
		}
		r.lock.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if _, waits := r.waiting[one.name]; !waits {
		r.left++ // It is in place, and the word of it was lost.
		r.progress.add(one, -one.counted)
	}
	delete(r.waiting, one.name)
	one.link, one.done = link, make(chan struct{})
	return one, nil
}

// release ends a stream's hold of a unit, which another one may go on with.
func (r *receiver) release(one *unit, err error) {
	if err != nil {
		r.progress.add(one, -one.counted)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if err == nil {
		r.left--
	} else {
		r.waiting[one.name] = one
	}
	one.link = nil
	close(one.done)
}

// explain classifies a failure of a connection.
func (r *receiver) explain(step, name string, err error) error {
	var peer *peerError
	switch {
	case errors.As(err, &peer):
		return &Error{peer.code, "the sender: " + peer.message, err}
	case broken(err) && !errors.Is(err, os.ErrDeadlineExceeded):
		return r.end.fail(step, name, fmt.Errorf("the sender closed the connection: %w", err))
	}
	return r.end.fail(step, name, err)
}

// partialName is where a file lies until it is whole.
func partialName(name string) string { return files.Partial + "/" + name }
