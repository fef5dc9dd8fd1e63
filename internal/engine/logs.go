package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// maxLogs is how much of a log is kept: the end, where the cause of a failure is.
const maxLogs = 256 << 10

// Logs implements Engine. Lines below 1 mean all; at most the last 256 KiB are returned.
func (d *docker) Logs(ctx context.Context, id string, lines int) (string, error) {
	if err := d.ready(ctx); err != nil {
		return "", err
	}
	step := "read the log of container " + id
	options := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true}
	if lines > 0 {
		options.Tail = strconv.Itoa(lines)
	}
	stream, err := d.api.ContainerLogs(ctx, id, options)
	if err != nil {
		return "", d.fail(ctx, step, err)
	}
	defer func() { _ = stream.Close() }()
	end := &ending{limit: maxLogs}
	if err := demultiplex(end, bufio.NewReader(stream)); err != nil {
		return "", d.fail(ctx, step, err)
	}
	return end.String(), nil
}

// headerSize is that of a multiplexed frame: stream, three zeros, length.
const headerSize = 8

// demultiplex copies both streams in order. The log of a container with a terminal has no frames.
func demultiplex(out io.Writer, in *bufio.Reader) error {
	header, err := in.Peek(headerSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(header) == headerSize && header[0] <= byte(stdcopy.Systemerr) && bytes.Equal(header[1:4], []byte{0, 0, 0}) {
		_, err = stdcopy.StdCopy(out, out, in)
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

// ending keeps the last limit bytes, from the start of a line on.
type ending struct {
	limit int
	kept  []byte
	cut   bool
}

// Write implements io.Writer.
func (e *ending) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p...)
	// Twice the limit may pile up, so that not every write moves the whole.
	if len(e.kept) > 2*e.limit {
		e.trim()
	}
	return len(p), nil
}

func (e *ending) trim() {
	if over := len(e.kept) - e.limit; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
		e.cut = true
	}
}

// String is the kept end.
func (e *ending) String() string {
	e.trim()
	if _, rest, ok := bytes.Cut(e.kept, []byte("\n")); ok && e.cut {
		return string(rest)
	}
	return string(e.kept)
}
