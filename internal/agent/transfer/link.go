package transfer

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// On a proven connection lines of JSON and contents take turns. For each file:
//
//	sender:   name, size, modified
//	receiver: offset, how much of the file it already has
//	receiver: prefix, the digest of that much (left out at offset 0)
//	sender:   from, where it goes on: offset if its own prefix has that digest, else 0
//	sender:   the bytes from there on
//	sender:   sha256 of the whole file, and the proof of it by the connection's key
//	receiver: stored
//
// The sender's end closes the connection. Either side may send an error in place of its line.
type message struct {
	Name     string `json:"name,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Modified int64  `json:"modified,omitempty"`
	Offset   *int64 `json:"offset,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	From     *int64 `json:"from,omitempty"`
	SHA256   string `json:"sha256,omitempty"`
	Proof    string `json:"proof,omitempty"`
	Stored   bool   `json:"stored,omitempty"`
	End      bool   `json:"end,omitempty"`
	Error    string `json:"error,omitempty"`
	Code     string `json:"code,omitempty"`
}

// maxLine bounds a line, in bytes: a path has at most 4096, which JSON may make six times as long.
const maxLine = 32 << 10

// peerError is a failure that the other end reports.
type peerError struct{ code, message string }

// Error implements error.
func (e *peerError) Error() string { return e.message }

// link is one proven connection.
type link struct {
	conn   net.Conn
	reader *bufio.Reader
	key    []byte
	stall  time.Duration
	stop   func() bool
}

// newLink ties a connection to a context: it closes with it, at once.
func newLink(ctx context.Context, conn net.Conn, stall time.Duration) *link {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &link{conn: conn, reader: bufio.NewReaderSize(conn, maxLine), stall: stall, stop: stop}
}

// close ends the connection; what it could still fail at is of no interest any more.
func (l *link) close() {
	l.stop()
	_ = l.conn.Close()
}

func (l *link) send(message message) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return l.write(append(text, '\n'))
}

// write sends bytes; the peer has the stall timeout to take them.
func (l *link) write(content []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.stall)); err != nil {
		return err
	}
	_, err := l.conn.Write(content)
	return err
}

// read fills a part of the buffer with what comes next; the peer has the stall timeout to send any.
func (l *link) read(buffer []byte) (int, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(l.stall)); err != nil {
		return 0, err
	}
	return l.reader.Read(buffer)
}

// receive waits for a line, as long as patience lasts.
func (l *link) receive(patience time.Duration) (message, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return message{}, err
	}
	line, err := l.reader.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return message{}, io.ErrUnexpectedEOF
	}
	if err != nil {
		return message{}, err
	}
	var received message
	if err := json.Unmarshal(line, &received); err != nil {
		return message{}, fmt.Errorf("the other end sent no line of the protocol: %w", err)
	}
	if received.Error != "" {
		return message{}, &peerError{received.Code, received.Error}
	}
	return received, nil
}

// refuse tells the peer why this end gives up, and lets the line arrive: closing with unread input
// would reset the connection over it.
func (l *link) refuse(err error) {
	var peer *peerError
	if errors.As(err, &peer) {
		return
	}
	refusal := message{Error: err.Error(), Code: agent.TransferFailed}
	var known *Error
	if errors.As(err, &known) {
		refusal.Code = known.Code
	}
	if l.send(refusal) != nil {
		return
	}
	if half, ok := l.conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if l.conn.SetReadDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = io.Copy(io.Discard, l.reader)
	}
}

// proof ties a file's digest to the connection's key.
func (l *link) proof(name string, size int64, digest string) string {
	return hex.EncodeToString(proof(l.key, []byte(strconv.Quote(name)+" "+strconv.FormatInt(size, 10)+" "+digest)))
}
