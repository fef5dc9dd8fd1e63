package sshx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// commandConn is a connection that a ProxyCommand makes: its standard input and output.
type commandConn struct {
	net.Conn
	line    string
	stderr  *tail
	ended   chan struct{} // closed when the command has ended, with result set
	result  error
	kill    func()
	closing sync.Once
}

// proxyCommand starts the ProxyCommand of ssh_config, as ssh does: by the shell, with the connection on its
// standard input and output.
func (d *dialing) proxyCommand(ctx context.Context, line string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := startProxy(line)
	if err != nil {
		return nil, d.fail(ProxyFailed, stepDial, fmt.Errorf("ProxyCommand %q: %w", line, err))
	}
	return conn, nil
}

// Close implements net.Conn; it also ends the command.
func (c *commandConn) Close() error {
	var err error
	c.closing.Do(func() {
		err = c.Conn.Close()
		c.kill()
	})
	return err
}

// watch collects the end of the command.
func (c *commandConn) watch(command *exec.Cmd) {
	go func() {
		c.result = command.Wait()
		close(c.ended)
	}()
}

// proxySettles is how long an ended command is waited for, to say why it ended.
const proxySettles = 200 * time.Millisecond

// proxySaid adds what a ProxyCommand left to say to a failure that its end may explain.
func proxySaid(raw net.Conn, err error) error {
	command, ok := raw.(*commandConn)
	if !ok {
		return err
	}
	select {
	case <-command.ended:
		if command.result != nil {
			err = errors.Join(err, fmt.Errorf("the ProxyCommand %q ended: %w", command.line, command.result))
		}
	case <-time.After(proxySettles):
	}
	if said := strings.TrimSpace(command.stderr.String()); said != "" {
		err = errors.Join(err, fmt.Errorf("the ProxyCommand said: %s", said))
	}
	return err
}
