package weights

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// network joins the agents of a test: a receiver's listener is found by its address.
type network struct {
	lock      sync.Mutex
	receivers map[string]*receiver
	secrets   map[string]int
}

// receiver is an open Receive.
type receiver struct {
	request agent.ReceiveRequest
	files   chan agent.File
	done    chan struct{}
}

// node is an agent with files in memory.
type node struct {
	agent.Agent // nil: any other call is a fault of the test
	name        string
	net         *network
	lock        sync.Mutex
	listing     agent.Listing
	cleaned     []string
	changed     int
	// faults
	listErr, receiveErr, sendErr error
	deaf, silent                 bool // no listener; no end
	forge                        string
	// digests are the contents by file, read which were digested.
	digests   map[string]string
	read      []string
	digestErr error
}

// machine is the node as the fleet has it.
type machine struct {
	fleet.Machine
	node *node
}

func (m machine) Host() string                               { return m.node.name }
func (m machine) Agent(context.Context) (agent.Agent, error) { return m.node, nil }

func (m machine) Changed() {
	m.node.lock.Lock()
	defer m.node.lock.Unlock()
	m.node.changed++
}

func (n *node) host(address string) Host {
	return Host{Machine: machine{node: n}, Address: address, Place: Place{Folder: "/models/tiny"}}
}

func (n *node) Clean(_ context.Context, folder string) error {
	n.cleaned = append(n.cleaned, folder)
	return nil
}

func (n *node) List(context.Context, agent.ListRequest) (agent.Listing, error) {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.listing, n.listErr
}

func (n *node) Digest(_ context.Context, request agent.DigestRequest, onEvent func(agent.TransferEvent)) error {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, file := range request.Files {
		n.read = append(n.read, file.Name)
		file.SHA256 = n.digests[file.Name]
		if file.SHA256 == "" {
			file.Damage = "cannot be read: no such file"
		}
		onEvent(agent.TransferEvent{Finished: &file})
	}
	return n.digestErr
}

func (n *node) Receive(ctx context.Context, request agent.ReceiveRequest, onEvent func(agent.TransferEvent)) error {
	if n.deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	one := &receiver{request: request, files: make(chan agent.File), done: make(chan struct{})}
	defer close(one.done)
	address := request.Address + ":40000"
	n.net.lock.Lock()
	n.net.receivers[address] = one
	n.net.secrets[request.Secret]++
	n.net.lock.Unlock()
	onEvent(agent.TransferEvent{Listening: address})
	var bytes int64
	for range request.Files {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case file := <-one.files:
			if n.receiveErr != nil {
				return n.receiveErr
			}
			if n.silent {
				<-ctx.Done()
				return ctx.Err()
			}
			bytes += file.Size
			n.lock.Lock()
			n.listing.Files = append(slices.DeleteFunc(n.listing.Files, func(old agent.File) bool { return old.Name == file.Name }), file)
			n.listing.Exists = true
			n.lock.Unlock()
			onEvent(agent.TransferEvent{Bytes: bytes})
			onEvent(agent.TransferEvent{Finished: &agent.File{Name: file.Name, Size: file.Size, SHA256: "sha-of-" + file.Name}})
		}
	}
	onEvent(agent.TransferEvent{Done: true})
	return nil
}

func (n *node) Send(ctx context.Context, request agent.SendRequest, _ func(agent.TransferEvent)) error {
	if n.sendErr != nil {
		return n.sendErr
	}
	n.net.lock.Lock()
	one := n.net.receivers[request.Target]
	n.net.lock.Unlock()
	if one == nil || one.request.Secret != request.Secret {
		return &agent.Error{Host: n.name, Step: "send", Code: agent.TransferAuth, Message: "refused"}
	}
	for _, file := range request.Files {
		if file.SHA256 != "" && file.SHA256 != "sha-of-"+file.Name {
			return fmt.Errorf("unexpected digest %s", file.SHA256)
		}
		if n.forge == file.Name {
			file.Damage = "cut"
		}
		select {
		case one.files <- file:
		case <-one.done:
			return &agent.Error{Host: n.name, Step: "send", Code: agent.TransferFailed, Message: "connection reset"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
