package hosttest

import (
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The stream numbers of Docker's multiplexed output.
const (
	streamStdout = 1
	streamStderr = 2
)

// frame writes one piece of multiplexed output.
func frame(w io.Writer, stream byte, text string) error {
	header := make([]byte, 8, 8+len(text))
	header[0] = stream
	binary.BigEndian.PutUint32(header[4:], uint32(len(text))) //nolint:gosec // A log line is short.
	_, err := w.Write(append(header, text...))
	return err
}

// containerLogs answers GET /containers/{id}/logs, with tail, stdout, stderr, timestamps and follow.
func (e *engineServer) containerLogs(w http.ResponseWriter, r *http.Request) {
	fleet, query := e.host.fleet, r.URL.Query()
	fleet.mu.Lock()
	fleet.settle()
	c := e.host.find(r.PathValue("id"))
	next := 0
	if c != nil {
		if tail, err := strconv.Atoi(query.Get("tail")); err == nil && tail >= 0 {
			next = max(0, len(c.logs)-tail)
		}
	}
	fleet.mu.Unlock()
	if c == nil {
		e.fail(w, http.StatusNotFound, "No such container: %s", r.PathValue("id"))
		return
	}
	w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
	w.WriteHeader(http.StatusOK)
	for {
		var lines []logLine
		ended := true
		err := fleet.await(r.Context(), func() bool {
			lines = append([]logLine(nil), c.logs[min(next, len(c.logs)):]...)
			ended = !c.running()
			return len(lines) > 0 || ended || !truthy(r, "follow")
		})
		if err != nil {
			return
		}
		next += len(lines)
		for _, line := range lines {
			stream, wanted := byte(streamStdout), truthy(r, "stdout")
			if line.stderr {
				stream, wanted = streamStderr, truthy(r, "stderr")
			}
			text := line.text + "\n"
			if truthy(r, "timestamps") {
				text = line.at.UTC().Format(time.RFC3339Nano) + " " + text
			}
			if wanted && frame(w, stream, text) != nil {
				return
			}
		}
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		if ended && len(lines) == 0 || !truthy(r, "follow") {
			return
		}
	}
}
