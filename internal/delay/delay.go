// Package delay makes a long line out of a local one, for tests and the benchmark: every byte is held
// back for a while in each direction, order kept, without a limit of bandwidth.
package delay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// chunkSize is what one read takes: more than any window that SSH opens.
	chunkSize = 64 << 10
	// inFlight bounds what one direction holds: 64 MiB, which at 10 ms is more than 6 GB/s.
	inFlight = 1024
	// lingering is how long a closed line goes on delivering.
	lingering = time.Second
)

// chunk is what was read or written at one moment.
type chunk struct {
	data []byte
	due  time.Time
}

// Line is the far end of a long line: what the near end sends arrives oneWay later, and the other way
// round. Deadlines are not supported: they are those of the connection below, oneWay early.
type Line struct {
	net.Conn
	oneWay time.Duration
	// opened is when the far end of a real line accepts: 1.5 round trips after the near end began to
	// connect; here it is connected at once.
	opened time.Time

	ctx    context.Context
	cancel context.CancelFunc

	// reading guards rest: one reader at a time, as of any connection.
	reading sync.Mutex
	rest    []byte
	arrived chan chunk
	// readErr is set before arrived is closed.
	readErr error

	writing sync.Mutex
	ended   bool // by CloseWrite
	sent    chan chunk
	// done is closed when all that was sent is delivered or given up; writeErr is set before.
	done     chan struct{}
	writeErr error
}

// Over puts a long line on an accepted connection. With oneWay 0 it is the connection itself.
func Over(conn net.Conn, oneWay time.Duration) net.Conn {
	if oneWay <= 0 {
		return conn
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Line{
		Conn: conn, oneWay: oneWay, opened: time.Now().Add(3 * oneWay), ctx: ctx, cancel: cancel,
		arrived: make(chan chunk, inFlight), sent: make(chan chunk, inFlight), done: make(chan struct{}),
	}
	go l.collect()
	go l.deliver()
	return l
}

// due is when something that is handed over now reaches the other end.
func (l *Line) due() time.Time {
	start := time.Now()
	if start.Before(l.opened) {
		start = l.opened
	}
	return start.Add(l.oneWay)
}

// collect reads until the end and stamps what it read.
func (l *Line) collect() {
	defer close(l.arrived)
	buffer := make([]byte, chunkSize)
	for {
		count, err := l.Conn.Read(buffer)
		one := chunk{data: append([]byte(nil), buffer[:count]...), due: time.Now().Add(l.oneWay)}
		if one.due.Before(l.opened) {
			one.due = l.opened // it was on its way while the connection was made
		}
		if count > 0 || errors.Is(err, io.EOF) { // the end travels as long as the rest
			select {
			case l.arrived <- one:
			case <-l.ctx.Done():
				l.readErr = net.ErrClosed
				return
			}
		}
		if err != nil {
			l.readErr = err
			return
		}
	}
}

// Read implements net.Conn.
func (l *Line) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	for len(l.rest) == 0 {
		one, ok := <-l.arrived
		if !ok {
			return 0, l.readErr
		}
		if err := Pause(l.ctx, time.Until(one.due)); err != nil {
			return 0, net.ErrClosed
		}
		l.rest = one.data
	}
	count := copy(p, l.rest)
	l.rest = l.rest[count:]
	return count, nil
}

// Write implements net.Conn. It returns before the bytes have arrived; that they did not is the error
// of a later call.
func (l *Line) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.ended || l.ctx.Err() != nil {
		return 0, net.ErrClosed
	}
	select {
	case l.sent <- chunk{data: append([]byte(nil), p...), due: l.due()}:
		return len(p), nil
	case <-l.done:
		return 0, errors.Join(net.ErrClosed, l.writeErr)
	case <-l.ctx.Done():
		return 0, net.ErrClosed
	}
}

// deliver writes each chunk when it is due, then ends that direction.
func (l *Line) deliver() {
	defer close(l.done)
	for one := range l.sent {
		if l.writeErr = Pause(l.ctx, time.Until(one.due)); l.writeErr != nil {
			return
		}
		if _, l.writeErr = l.Conn.Write(one.data); l.writeErr != nil {
			return
		}
	}
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok && l.ctx.Err() == nil {
		l.writeErr = half.CloseWrite()
	}
}

// CloseWrite ends the direction to the near end behind all that was written.
func (l *Line) CloseWrite() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.ended {
		l.ended = true
		close(l.sent)
	}
	return nil
}

// Close implements net.Conn: what was written before still arrives, then the near end sees the end. A
// near end that reads nothing is given lingering.
func (l *Line) Close() error {
	err := l.CloseWrite()
	go func() {
		timer := time.NewTimer(l.oneWay + lingering)
		defer timer.Stop()
		select {
		case <-l.done:
		case <-timer.C:
		}
		l.cancel()
		_ = l.Conn.Close() // nobody is left to tell
	}()
	return err
}

// Pause waits, or until the context ends.
func Pause(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
