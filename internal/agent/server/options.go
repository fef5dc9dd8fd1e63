// Package server is the agent's side that runs on a node: it answers the calls of agent.Agent on
// one stream and ends with it. Nothing of the machine is read but through Options, so that a test
// can serve another machine in its own process.
package server

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Options is the machine as the server sees it. The zero value is the real one.
type Options struct {
	// Root is put before /sys, /proc and /etc where facts are read. Empty is the real machine.
	Root string
	// PathRoot is put before the absolute folders of weights: "/home/aurora/models" is then read
	// and written below it. Answers and messages name the folder without it.
	PathRoot string

	// Hostname, Architecture (Go's name) and Kernel, if not the real ones.
	Hostname     string
	Architecture string
	Kernel       string
	// User is the login, if not the real one. Its Home is what "~/" in a folder stands for.
	User *agent.User
	// Home overrides the user's home folder.
	Home string

	// Interfaces lists the network devices; nil asks the kernel.
	Interfaces func() ([]agent.Interface, error)
	// Routing gives the IPv4 routing; nil asks the kernel, or nobody with a Root.
	Routing func() (agent.Routing, error)
	// Run runs the other programs that facts come from (nvidia-smi for details, sudo, iptables) and
	// gives their output; nil runs them, or none with a Root.
	Run func(ctx context.Context, program string, arguments ...string) (string, error)
	// NvidiaSMI answers with the output of the query for index, name, uuid and driver_version as
	// CSV without a header; nil runs the program, with a limit of 5 s.
	NvidiaSMI func(ctx context.Context) (string, error)
	// Listening gives the TCP ports in use; nil reads /proc/net/tcp and tcp6 below Root.
	Listening func() ([]int, error)
	// Listeners gives the sockets that take connections; nil reads /proc/net/tcp and tcp6 below Root.
	Listeners func() ([]agent.Listener, error)
	// Now is the node's clock; nil is the real one.
	Now func() time.Time

	// FreeBytes says what a file system has left for the user; nil asks the kernel.
	FreeBytes func(path string) (int64, error)
	// Log takes what goes wrong inside the server, such as the trace of a panic; nil drops it.
	Log io.Writer
	// Asked is told the path of each question before it is answered; nil tells nobody.
	Asked func(path string)
	// Executable is the path of the agent's own file, for Uninstall; empty asks the kernel.
	Executable string

	// ReadOnly answers questions only: no transfer, no removal. It is what a forced command of sshd
	// gives a key that may only look.
	ReadOnly bool
	// DockerSocket is the one engine that ReadOnly shows.
	DockerSocket string
	// Folders are those that ReadOnly lists and proves, with all below; none means whatever the user may read.
	Folders []string
	// Dial opens a connection to the engine's socket ("unix") or a program of this node ("tcp"); nil is
	// the real thing.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ConnectTimeout is how long a receiver waits for its sender (and the other way round); 0 means 20 s.
	ConnectTimeout time.Duration
	// StallTimeout ends a connection of a transfer that makes no progress; 0 means 10 s.
	StallTimeout time.Duration
	// LeaveTimeout is how long calls have to end with their session; 0 means 10 s. One that waits for a
	// file system that hangs does not end, and must not keep the process.
	LeaveTimeout time.Duration
}
