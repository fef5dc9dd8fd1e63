package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// sender is the source's side of a transfer.
type sender struct {
	end      End
	root     *os.Root
	secret   []byte
	progress *progress
}

// Send connects to a receiver and gives it the files of the request.
func Send(ctx context.Context, end End, request agent.SendRequest, report Report) error {
	units, err := plan(request.Files)
	if err != nil {
		return err
	}
	secret, err := decodeSecret(request.Secret)
	if err != nil {
		return failed(agent.TransferAuth, "send from %s: %w", end.Folder, err)
	}
	root, err := files.OpenFolder(end.Real)
	if err != nil {
		return end.fail("open", "", err)
	}
	defer root.Close() //nolint:errcheck // Nothing is written through it.
	s := &sender{end: end, root: root, secret: secret, progress: &progress{report: report}}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// All connections are proven before the first file goes out: so the receiver knows that it has
	// seen every sender when the last of them says that it has ended.
	var links []*link
	defer func() {
		for _, link := range links {
			link.close()
		}
	}()
	for range min(streams, runtime.NumCPU(), max(1, len(units))) {
		link, err := s.connect(ctx, request)
		if err != nil {
			return ended(ctx, err)
		}
		links = append(links, link)
	}
	queue := make(chan *unit, len(units))
	for _, one := range units {
		queue <- one
	}
	close(queue)
	return s.run(ctx, cancel, request, links, queue)
}

// run sends the queue over the links; the first failure ends them all and is the result.
func (s *sender) run(ctx context.Context, cancel context.CancelCauseFunc, request agent.SendRequest, links []*link, queue <-chan *unit) error {
	results := make(chan error, len(links))
	for _, link := range links {
		go func() { results <- s.stream(ctx, &lane{link: link, request: request}, queue) }()
	}
	var first error
	for range links {
		err := <-results
		if err != nil && first == nil {
			first = ended(ctx, err)
			cancel(first)
		}
	}
	return first
}

// connect dials from the own address and proves the secret.
func (s *sender) connect(ctx context.Context, request agent.SendRequest) (*link, error) {
	source, target := request.Source, request.Target
	dialer := net.Dialer{Timeout: s.end.connectTimeout()}
	if source != "" {
		address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(source, "0"))
		if err != nil {
			return nil, failed(agent.TransferConnect, "connect from %s: %w", source, err)
		}
		dialer.LocalAddr = address
	}
	conn, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, failed(agent.TransferConnect, "connect from %s to %s: %w", source, target, err)
	}
	if request.Encrypt {
		if conn, err = encryptedSender(conn, s.secret); err != nil {
			return nil, failed(agent.TransferFailed, "connect from %s to %s: %w", source, target, err)
		}
	}
	link := newLink(ctx, conn, s.end.stallTimeout())
	err = conn.SetDeadline(time.Now().Add(s.end.connectTimeout()))
	if err == nil {
		err = handshake(conn)
	}
	if err == nil {
		link.key, err = proveSender(conn, s.secret)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil {
		return link, nil
	}
	link.close()
	if errors.Is(err, errWrongSecret) {
		return nil, failed(agent.TransferAuth, "connect from %s to %s: %w", source, target, err)
	}
	return nil, failed(agent.TransferConnect, "connect from %s to %s: %w", source, target, err)
}

// lane is a connection that is replaced when it is lost.
type lane struct {
	link    *link
	request agent.SendRequest
}

// stream sends units until the queue is empty.
func (s *sender) stream(ctx context.Context, lane *lane, queue <-chan *unit) error {
	defer func() { lane.link.close() }()
	for one := range queue {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.deliver(ctx, lane, one); err != nil {
			return err
		}
	}
	if err := lane.link.send(message{End: true}); err != nil {
		return s.end.fail("end the transfer from", "", err)
	}
	return nil
}

// deliver sends one unit, on another connection when this one breaks or stands still: the receiver has kept
// what arrived. If there is no other, the first failure is the one to tell.
func (s *sender) deliver(ctx context.Context, lane *lane, one *unit) error {
	for attempt := 1; ; attempt++ {
		err := s.unit(ctx, lane.link, one)
		if err == nil || ctx.Err() != nil || !lost(err) || attempt == tries {
			return err
		}
		if one.counted >= enoughMoved {
			attempt = 0
		}
		s.progress.add(one, -one.counted)
		lane.link.close()
		fresh, dialErr := s.connect(ctx, lane.request)
		if dialErr != nil {
			return err
		}
		lane.link = fresh
	}
}

// unit sends one content. When it returns nil, the receiver has it in place.
func (s *sender) unit(ctx context.Context, link *link, one *unit) error {
	file, err := files.OpenRegular(s.root, one.name)
	if err != nil {
		err = s.end.fail("read", one.name, err)
		link.refuse(err)
		return err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	info, err := file.Stat()
	switch {
	case err != nil:
		err = s.end.fail("read", one.name, err)
	case info.Size() != one.size:
		err = failed(agent.TransferMismatch, "%s/%s has %d bytes, %d are expected", s.end.Folder, one.name, info.Size(), one.size)
	}
	if err != nil {
		link.refuse(err)
		return err
	}
	digest, err := s.content(ctx, link, one, file, info)
	if err != nil {
		return s.explain(link, one, err)
	}
	s.progress.finished(one, info.ModTime().UnixNano(), digest)
	return nil
}

// sourceError is a failure of the file that is sent, which the peer has to be told.
type sourceError struct{ error }

// Unwrap gives the cause.
func (e sourceError) Unwrap() error { return e.error }

// content sends header, bytes and digest, and waits for the receiver's word.
func (s *sender) content(ctx context.Context, link *link, one *unit, file *os.File, info os.FileInfo) (string, error) {
	modified := info.ModTime().UnixNano()
	if err := link.send(message{Name: one.name, Size: one.size, Modified: modified}); err != nil {
		return "", err
	}
	sum := sha256.New()
	from, err := s.resume(ctx, link, one, file, sum)
	if err != nil {
		return "", err
	}
	if err := s.bytes(ctx, link, one, file, sum, from); err != nil {
		return "", err
	}
	if now, err := file.Stat(); err != nil {
		return "", sourceError{err}
	} else if now.Size() != one.size || now.ModTime().UnixNano() != modified {
		return "", sourceError{errors.New("the file was changed while it was read")}
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if err := link.send(message{SHA256: digest, Proof: link.proof(one.name, one.size, digest)}); err != nil {
		return "", err
	}
	answer, err := link.receive(s.end.patience(one.size))
	if err == nil && !answer.Stored {
		err = errors.New("the receiver did not say that it stored the file")
	}
	return digest, err
}

// resume agrees on the byte to go on from, and feeds what lies before it to the digest.
func (s *sender) resume(ctx context.Context, link *link, one *unit, file *os.File, sum hash.Hash) (int64, error) {
	answer, err := link.receive(s.end.stallTimeout())
	if err != nil {
		return 0, err
	}
	if answer.Offset == nil || *answer.Offset < 0 || *answer.Offset > one.size {
		return 0, errors.New("the receiver named no usable offset")
	}
	offset := *answer.Offset
	if offset == 0 {
		return 0, nil
	}
	if err := digestPrefix(ctx, file, offset, sum); err != nil {
		return 0, sourceError{err}
	}
	own := hex.EncodeToString(sum.Sum(nil))
	if answer, err = link.receive(s.end.patience(offset)); err != nil {
		return 0, err
	}
	if answer.Prefix != own {
		offset = 0
		sum.Reset()
	}
	s.progress.add(one, offset)
	return offset, link.send(message{From: &offset})
}

// bytes sends the file from an offset on.
func (s *sender) bytes(ctx context.Context, link *link, one *unit, file *os.File, sum hash.Hash, from int64) error {
	buffer := make([]byte, disk.Chunk)
	for offset := from; offset < one.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), one.size-offset)], offset)
		if n > 0 {
			sum.Write(buffer[:n])
			if err := link.write(buffer[:n]); err != nil {
				return err
			}
			disk.Evict(file, offset, int64(n))
			offset += int64(n)
			s.progress.add(one, int64(n))
		}
		if errors.Is(err, io.EOF) && offset < one.size {
			return sourceError{fmt.Errorf("the file ended at byte %d of %d while it was read", offset, one.size)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return sourceError{err}
		}
	}
	return nil
}

// explain finds the best reason for a failed file: the receiver's own, if it gave one.
func (s *sender) explain(link *link, one *unit, err error) error {
	var source sourceError
	var peer *peerError
	switch {
	case errors.As(err, &source):
		// In the middle of a content no line can be said: the receiver sees the connection end.
		return s.end.fail("read", one.name, source.error)
	case !errors.As(err, &peer) && broken(err) && !errors.Is(err, os.ErrDeadlineExceeded):
		if _, late := link.receive(time.Second); !errors.As(late, &peer) {
			return s.end.fail("send", one.name, err)
		}
	}
	if peer != nil {
		return &Error{peer.code, "the receiver: " + peer.message, peer}
	}
	return s.end.fail("send", one.name, err)
}
