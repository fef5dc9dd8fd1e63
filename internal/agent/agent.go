// Package agent is the client's side of the helper that runs on a node: the protocol's types, the
// upload and start over SSH, and the calls. The server's side is in the package server below it.
//
// The agent speaks HTTP/2 with JSON bodies on its standard input and output and ends with the SSH
// session. It has no daemon, no open port outside a transfer and no need of root.
package agent

import "context"

// ProtocolVersion changes when a request or an answer changes its meaning.
const ProtocolVersion = 1

// Agent is what the layers above ask of a node's helper. Every call obeys its context.
type Agent interface {
	// Facts looks at the node.
	Facts(ctx context.Context) (Facts, error)
	// List walks a folder of weights and proves each file as far as asked.
	List(ctx context.Context, request ListRequest) (Listing, error)
	// Receive takes files from another agent; onEvent is called for each event, the first of which
	// carries Listening. It returns when the transfer is done, failed or cancelled.
	Receive(ctx context.Context, request ReceiveRequest, onEvent func(TransferEvent)) error
	// Send gives files to another agent's Receive.
	Send(ctx context.Context, request SendRequest, onEvent func(TransferEvent)) error
	// Clean removes unfinished copies of ours below a folder.
	Clean(ctx context.Context, folder string) error
	// Uninstall removes the agent's own files from the node; the running process ends with its session.
	Uninstall(ctx context.Context) error
	// Done is closed when the session is over, whatever ended it.
	Done() <-chan struct{}
	// Close ends the session.
	Close() error
}

// Error is a failed call of the agent.
type Error struct {
	// Host is the node, Step what was tried: "start agent", "list /models".
	Host, Step string
	// Code is one of the Transfer… constants, or empty.
	Code    string
	Message string
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	return e.Host + ": " + e.Step + ": " + text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
