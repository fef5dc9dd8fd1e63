//go:build unix

package sshx

import (
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup gives a command a process group of its own, so that killGroup ends all that it started.
func ownGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a started command with all of its group.
func killGroup(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }

// shell is what runs a command line.
func shell(line string) (*exec.Cmd, error) {
	command := exec.Command("/bin/sh", "-c", line) //nolint:noctx,gosec // it ends by killGroup; the line is the user's
	ownGroup(command)
	return command, nil
}

// startProxy starts a ProxyCommand with one end of a socket pair.
func startProxy(line string) (*commandConn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "proxy"), os.NewFile(uintptr(pair[1]), "proxy")
	defer func() {
		_ = ours.Close()
		_ = theirs.Close()
	}()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	command, err := shell("exec " + line)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c := &commandConn{Conn: conn, line: line, stderr: &tail{}, ended: make(chan struct{})}
	command.Stdin, command.Stdout, command.Stderr = theirs, theirs, c.stderr
	command.WaitDelay = proxySettles
	if err := command.Start(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.kill = func() { killGroup(command) }
	c.watch(command)
	return c, nil
}
