// Package client starts the agent on a node, over anything that can run a command there, and makes
// its calls. The first start on a node uploads the embedded program once.
package client

import (
	"context"
	"io"
)

// Process is a started command on the node. It has the shape of sshx.Process, so that one converts
// to the other: (*client.Process)(process).
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	// Stderr gives the last part of what the command wrote there.
	Stderr func() string
	// Wait returns when the command ended, with its exit code (-1 if it was cut off).
	Wait func() (int, error)
	// Close kills the command.
	Close func() error
}

// Starter runs commands on the node through the login shell of the user, whichever that is.
type Starter interface {
	// Start returns once the command runs. When ctx ends the command may be killed.
	Start(ctx context.Context, command string) (*Process, error)
}

// StarterFunc is a function that is a Starter.
type StarterFunc func(ctx context.Context, command string) (*Process, error)

// Start implements Starter.
func (f StarterFunc) Start(ctx context.Context, command string) (*Process, error) {
	return f(ctx, command)
}
