//go:build lab

package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLabFewPrograms: a node that has a busybox and little else. Without find nothing old is removed,
// without timeout nothing is bounded there, without ls and id no place of everyone's is taken; a home
// that takes the program needs none of them.
func TestLabFewPrograms(t *testing.T) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal("busybox is missing: .ci/packages installs it")
	}
	content, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	for name, applets := range map[string][]string{
		"the fewest": {"sh", "uname", "mkdir", "chmod", "cat", "mv", "rm"},
		"a busybox":  {"sh", "uname", "mkdir", "chmod", "cat", "mv", "rm", "rmdir", "id", "ls", "find", "timeout", "wc", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, folder := range []string{"bin", "dev", "proc", "home/a"} {
				must(t, os.MkdirAll(filepath.Join(root, folder), 0o755)) //nolint:gosec // As a system has them.
			}
			must(t, os.WriteFile(filepath.Join(root, "bin/busybox"), content, 0o755)) //nolint:gosec // It is run.
			for _, applet := range applets {
				must(t, os.Symlink("busybox", filepath.Join(root, "bin", applet)))
			}
			const null = 1<<8 | 3 // the device 1:3
			must(t, syscall.Mknod(filepath.Join(root, "dev/null"), syscall.S_IFCHR|0o666, null))
			must(t, syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""))
			t.Cleanup(func() { must(t, syscall.Unmount(filepath.Join(root, "proc"), syscall.MNT_DETACH)) })
			n := newNode(t, "sh")
			n.home = "/home/a"
			n.login(`exec /usr/sbin/chroot ` + root + ` /bin/sh "$@"`)
			n.install(filepath.Join(root, "home/a/.cache/spark-stack"))
		})
	}
}
