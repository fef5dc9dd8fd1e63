//go:build !unix

package sshx

import (
	"errors"
	"os/exec"
)

var errNoShell = errors.New("commands on this machine need a POSIX shell, which this system does not have")

func killGroup(command *exec.Cmd) { _ = command.Process.Kill() }

func shell(string) (*exec.Cmd, error) { return nil, errNoShell }

func startProxy(string) (*commandConn, error) {
	return nil, errors.New("ProxyCommand is not supported on this system; use ProxyJump")
}
