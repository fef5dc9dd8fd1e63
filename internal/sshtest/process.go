//go:build unix

package sshtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killTree kills a process and its descendants, then whatever has left the tree (a daemon) but still
// carries the connection to our server in its environment: SSH_CONNECTION ends with the suffix.
func killTree(root int, suffix string) {
	// Until a pass finds nobody: a process can be born while its parent is killed.
	for range 10 {
		victims := append(descendants(root), connected(suffix)...)
		if alive(root) {
			victims = append(victims, root)
		}
		if len(victims) == 0 {
			return
		}
		for _, pid := range victims {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// descendants are the processes below root, from /proc.
func descendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		// "pid (name) state parent …"; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		found = append(found, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return found
}

// connected are the processes of sessions of the server.
func connected(suffix string) []int {
	var found []int
	for _, pid := range processes() {
		environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if bytes.HasPrefix(variable, []byte("SSH_CONNECTION=")) && bytes.HasSuffix(variable, []byte(suffix)) {
				found = append(found, pid)
			}
		}
	}
	return found
}

func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
