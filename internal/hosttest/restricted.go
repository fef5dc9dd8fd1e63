package hosttest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// restriction marks the connections of the key that may only look.
const restriction = "only-look@hosttest"

// ReadOnlyKeyFile is the path of a key whose line in authorized_keys is, on every host,
// restrict,command="spark-agent serve --read-only".
func (f *Fleet) ReadOnlyKeyFile() string { return filepath.Join(f.dir, "id_ed25519_look") }

// Dial opens a connection as a program on the host does.
func (h *Host) Dial(_ context.Context, network, address string) (net.Conn, error) {
	failed := func(call error) error {
		return &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", call)}
	}
	listener := h.engine.listener
	switch faults := h.faults(); {
	case network == "unix" && (faults.engineDown || address != dockerSocket):
		return nil, failed(syscall.ENOENT)
	case network == "unix" && faults.denySocket:
		return nil, failed(syscall.EACCES)
	case network != "unix":
		name, port := splitHostPort(address)
		if listener, _ = h.route(name, port); listener == nil {
			return nil, failed(syscall.ECONNREFUSED)
		}
	}
	near, far, err := socketPair()
	if err != nil {
		return nil, failed(err)
	}
	conn, err := listener.hand(near, far)
	if err != nil {
		return nil, failed(syscall.ECONNREFUSED)
	}
	return conn, nil
}

// socketPair is a connection with room for what one side writes before the other reads, as a real one
// has: both ends of HTTP/2 begin by writing.
func socketPair() (near, far net.Conn, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var conns [2]net.Conn
	for i, descriptor := range pair {
		file := os.NewFile(uintptr(descriptor), "socket pair")
		var problem error
		conns[i], problem = net.FileConn(file)
		err = errors.Join(err, problem, file.Close())
	}
	return conns[0], conns[1], err
}
