package hosttest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

// isAgent recognizes the command line that starts the agent. The host always has it: uploading is
// a matter of the client's own tests.
func isAgent(command string) bool {
	return strings.Contains(command, "spark-agent") && strings.Contains(command, "serve")
}

// serveAgent runs the real agent's server on a session, with this host as its machine; restricted is
// with --read-only. It returns the exit code.
func (h *Host) serveAgent(ctx context.Context, channel ssh.Channel, restricted bool) int {
	h.fleet.mu.Lock()
	groups := h.groups()
	h.fleet.mu.Unlock()
	err := server.Serve(ctx, channel, server.Options{
		Root: h.factsRoot(), PathRoot: h.root,
		Hostname: h.name, Architecture: "arm64", Kernel: kernelVersion,
		User:       &agent.User{Name: User, UID: 1000, GID: 1000, Home: h.Home(), Groups: groups},
		Interfaces: h.interfaces, Routing: h.routing, NvidiaSMI: h.nvidiaSMI, Listening: h.listeningPorts,
		FreeBytes: h.free, Dial: h.Dial, ReadOnly: restricted, DockerSocket: dockerSocket,
		Asked: h.asked, Listeners: h.listeners,
		Executable: filepath.Join(h.root, h.Home(), ".cache/spark-stack/spark-agent-0123456789ab"),
	})
	if err != nil && ctx.Err() == nil {
		return 1
	}
	return 0
}

// SetFreeBytes sets what the host's disk has left for the user; the default is 2 TB.
func (h *Host) SetFreeBytes(bytes int64) { h.change(func() { h.freeBytes = bytes }) }

func (h *Host) free(string) (int64, error) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return h.freeBytes, nil
}

// Questions are the paths of all that the host's agents were asked so far, in order.
func (h *Host) Questions() []string {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return slices.Clone(h.questions)
}

func (h *Host) asked(path string) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.questions = append(h.questions, path)
}
