//go:build lab

package acceptance

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// has says whether a node has a container.
func (w *lab) has(t testing.TB, node int, container string) bool {
	t.Helper()
	return strings.Contains(w.exec(t, node, "docker", "ps", "-a", "--format", "{{.Names}}"), container)
}

// providerKilled: a provider that dies in the middle of an apply leaves no process on the nodes, and
// the next apply goes on.
func providerKilled(t *testing.T, s stage) {
	w, _ := s.w.(*lab)
	w.fault(t, "ray-removed", b)
	command := s.ws.Command(t.Context(), "apply", "-auto-approve", "-no-color")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for deadline := time.Now().Add(time.Minute); !w.has(t, b, "ray-"+labName); {
		if time.Now().After(deadline) {
			t.Fatal("the apply did not begin")
		}
	}
	for _, child := range children(t, command.Process.Pid) {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Errorf("kill the provider: %v", err)
		}
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("apply succeeded without its provider")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("apply did not end after its provider was killed")
	}
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(time.Second) {
		left := ""
		for i := range w.nodes() {
			left += w.exec(t, i, "sh", "-c", "pgrep -af spark-agent | grep -v pgrep || true")
		}
		if left == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes are left on the nodes: %s", left)
		}
	}
	s.ws.Apply()
	s.ws.Empty()
}

// children are the processes that a process started: of terraform, the provider.
func children(t *testing.T, parent int) []int {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(parent)).Output()
	if err != nil {
		t.Fatalf("find the provider: %v", err)
	}
	var all []int
	for field := range strings.FieldsSeq(string(output)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid == os.Getpid() {
			t.Fatalf("pgrep: %q", field)
		}
		all = append(all, pid)
	}
	return all
}
