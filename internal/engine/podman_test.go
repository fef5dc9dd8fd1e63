//go:build lab

package engine_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// TestLabPodman: the real Podman is told from Docker by its answers, over a socket that it serves.
func TestLabPodman(t *testing.T) {
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal("podman is missing: .ci/packages installs it")
	}
	folder, err := os.MkdirTemp("", "podman") //nolint:usetesting // t.TempDir's path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "podman.sock")
	service := exec.CommandContext(t.Context(), podman, "--root", filepath.Join(folder, "root"), "--runroot", filepath.Join(folder, "run"),
		"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "system", "service", "--time=30", "unix://"+socket)
	service.Stdout, service.Stderr = t.Output(), t.Output()
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("podman makes no socket")
		}
	}
	e, err := engine.New("spark-a", func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	_, err = e.Containers(t.Context(), "any")
	var failed *engine.Error
	if !errors.As(err, &failed) || failed.Kind != engine.NotDocker || !strings.Contains(err.Error(), "is Podman ") || failed.Advice() == "" {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}
