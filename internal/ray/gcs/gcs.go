// Package gcs asks a Ray cluster's Global Control Store who belongs to the cluster and what is taken.
// It speaks gRPC by hand: four messages, decoded by field number, so that neither Python in the
// image nor generated code of one Ray release is needed. The numbers were read back from Ray 2.53
// and 2.60, where they are the same.
package gcs

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"
)

// CallTimeout bounds one question. A healthy GCS answers in a few milliseconds, through SSH too.
const CallTimeout = 5 * time.Second

// Dialer opens a connection as seen from the machine that reaches the GCS.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Table is what the GCS knows at one moment.
type Table struct {
	// Nodes, alive and dead, in the order of the answer.
	Nodes []Node
	// Groups are the placement groups that are not removed.
	Groups []PlacementGroup
	// Open says that the GCS answers who shows no token.
	Open bool
}

// Alive are the nodes that Ray counts as members now.
func (t Table) Alive() []Node {
	var alive []Node
	for _, node := range t.Nodes {
		if node.Alive {
			alive = append(alive, node)
		}
	}
	return alive
}

// Node is one raylet, from its first registration until the GCS forgets it.
type Node struct {
	// ID in hex. A restarted raylet has a new one.
	ID string
	// Address is what Ray knows the node by: NodeManagerAddress, and the name of its node:<ip> resource.
	Address  string
	Hostname string
	Alive    bool
	Head     bool
	// Started is when the raylet registered, in milliseconds of Unix time; 0 if the GCS did not tell. Of two
	// that are alive at one address, the earlier one has ended and Ray has not noticed yet.
	Started uint64
	// Total are the resources by name: "CPU", "GPU", "memory" in bytes, "node:<ip>".
	Total map[string]float64
	// Available is what is left of Total; nil if the GCS did not tell. A resource that is not in it
	// is wholly in use.
	Available map[string]float64
	// DeathReason is Ray's own word for the end of a dead node; empty for an alive one.
	DeathReason string
}

// GPUs that Ray offers on the node.
func (n Node) GPUs() int { return int(math.Round(n.Total["GPU"])) }

// GPUsUsed is how many of them are taken, counting a started fraction as one; 0 if the GCS did not tell.
func (n Node) GPUsUsed() int {
	if n.Available == nil {
		return 0
	}
	// Ray counts in ten-thousandths; the margin keeps a rounding error from being a used GPU.
	return int(math.Ceil(n.Total["GPU"] - n.Available["GPU"] - 1e-6))
}

// Offers says whether the node has the resource node:<address>, which vLLM's older Ray executor asks for.
func (n Node) Offers(address string) bool { return n.Total["node:"+address] > 0 }

// GroupState is the state of a placement group.
type GroupState int

// The states, by Ray's numbers.
const (
	GroupPending GroupState = iota
	GroupPrepared
	GroupCreated
	GroupRemoved
	GroupRescheduling
)

// String is Ray's word for it.
func (s GroupState) String() string {
	switch s {
	case GroupPending:
		return "PENDING"
	case GroupPrepared:
		return "PREPARED"
	case GroupCreated:
		return "CREATED"
	case GroupRemoved:
		return "REMOVED"
	case GroupRescheduling:
		return "RESCHEDULING"
	default:
		return fmt.Sprintf("state %d", int(s))
	}
}

// PlacementGroup is a reservation of resources; vLLM makes one per server.
type PlacementGroup struct {
	// ID in hex.
	ID    string
	Name  string
	State GroupState
	// Bundles are the resources that it asks for together.
	Bundles []map[string]float64
}

// Kind is a class of failed questions.
type Kind int

// The classes.
const (
	// Failed is any other gRPC status.
	Failed Kind = iota
	// Unreachable: nothing listens, or no way there.
	Unreachable
	// Silent: something accepted the connection and gave no answer in time.
	Silent
	// Unauthenticated: the GCS wants a token, or another one.
	Unauthenticated
	// Unparsable: what answered is no GCS, or one that this package does not understand.
	Unparsable
)

// Error is a failed question.
type Error struct {
	Kind Kind
	// Address of the GCS, Call the gRPC method.
	Address, Call string
	// Message is the other side's own sentence, if there was one.
	Message string
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	switch e.Kind {
	case Unreachable:
		return fmt.Sprintf("no GCS at %s: %s", e.Address, text)
	case Silent:
		return fmt.Sprintf("the GCS at %s does not answer: %s", e.Address, text)
	case Unauthenticated:
		return fmt.Sprintf("the GCS at %s wants another token: %s", e.Address, text)
	case Unparsable:
		return fmt.Sprintf("what listens at %s does not answer like a GCS: %s", e.Address, text)
	case Failed:
	}
	return fmt.Sprintf("the GCS at %s answers %s with an error: %s", e.Address, e.Call, text)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
