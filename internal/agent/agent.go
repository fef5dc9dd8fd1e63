// Package agent is the client's side of the helper that runs on a node: the protocol's types, the
// upload and start over SSH, and the calls. The server's side is in the package server below it.
//
// The agent speaks HTTP/2 with JSON bodies on its standard input and output and ends with the SSH
// session. It has no daemon, no open port outside a transfer and no need of root.
package agent

import (
	"context"
	"net/http"
)

// ProtocolVersion changes when a request or an answer changes its meaning.
const ProtocolVersion = 2

// Agent is what the layers above ask of a node's helper. Every call obeys its context.
type Agent interface {
	Secrets
	// Facts looks at the node.
	Facts(ctx context.Context) (Facts, error)
	// Containers looks at the engine's containers.
	Containers(ctx context.Context, request ContainersRequest) (EngineAnswers, error)
	// AskEngine passes a request on to the Docker engine behind a socket of the node, and AskProgram to
	// a program on the node ("127.0.0.1:8000"), if package filter allows it. The request's URL gives
	// path and query alone. An answer of any status is no error.
	AskEngine(socket string, request *http.Request) (*http.Response, error)
	AskProgram(address string, request *http.Request) (*http.Response, error)
	// ReadOnly says that the agent refuses every call that would change something.
	ReadOnly() bool
	// Forget drops what was asked together with the start and not taken yet: it is older than a change.
	Forget()
	// List walks a folder of weights and proves each file as far as asked.
	List(ctx context.Context, request ListRequest) (Listing, error)
	// Digest reads files whole. Each is in an event, Finished with its SHA256, or with Damage if it cannot
	// be read; the order is not that of the request.
	Digest(ctx context.Context, request DigestRequest, onEvent func(TransferEvent)) error
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
	// Code is one of the Transfer… and Refused… constants, or empty.
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

// The classes of questions that the agent did not pass on.
const (
	// RefusedReadOnly: the agent answers questions only.
	RefusedReadOnly = "read_only"
	// RefusedFilter: nobody may ask that through the agent.
	RefusedFilter = "filter"
	// RefusedConnect: nothing answers at the address.
	RefusedConnect = "unconnected"
	// RefusedBroken: something took the connection, and no answer came that can be passed on.
	RefusedBroken = "broken"
	// RefusedEngineDown: no engine answers on the socket.
	RefusedEngineDown = "engine_down"
	// RefusedEngineDenied: the user may not use the socket.
	RefusedEngineDenied = "engine_denied"
)
