package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

const (
	// factsTimeout bounds a look at the node; its slowest part, nvidia-smi, is bounded there.
	factsTimeout = 30 * time.Second
	// listTimeout bounds the walk of a folder: the headers of a hundred shards, from a slow disk.
	listTimeout = 2 * time.Minute
)

var (
	errFacts = fmt.Errorf("the agent runs, but the node was not looked at within %s: a file system or a driver of the node hangs", factsTimeout)
	errList  = fmt.Errorf("the agent runs, but the folder was not walked within %s: its file system hangs or is very slow (is it on a network?)", listTimeout)
)

// Facts implements agent.Agent.
func (c *connection) Facts(ctx context.Context) (agent.Facts, error) {
	if facts, taken, err := c.facts.take(ctx); taken {
		return facts, c.taken(ctx, "read facts", err)
	}
	return c.readFacts(ctx)
}

func (c *connection) readFacts(ctx context.Context) (agent.Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, factsTimeout, errFacts)
	defer cancel()
	var facts agent.Facts
	asked := time.Now()
	err := c.ask(ctx, "read facts", wire.PathFacts, struct{}{}, &facts)
	if err == nil {
		facts.ClockOffset = clockOffset(facts.Time, asked, time.Now())
	}
	return facts, err
}

// taken dresses the failure of a wait for what was asked ahead as that of a call.
func (c *connection) taken(ctx context.Context, step string, err error) error {
	if err != nil && ctx.Err() != nil {
		return c.fail(step, err)
	}
	return err
}

// clockOffset is how far a clock that was read between two moments is ahead; 0 if it need not be.
func clockOffset(read, asked, answered time.Time) time.Duration {
	switch {
	case read.Before(asked):
		return read.Sub(asked)
	case read.After(answered):
		return read.Sub(answered)
	}
	return 0
}

// List implements agent.Agent.
func (c *connection) List(ctx context.Context, request agent.ListRequest) (agent.Listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, errList)
	defer cancel()
	var listing agent.Listing
	err := c.ask(ctx, "list "+request.Folder, wire.PathList, request, &listing)
	return listing, err
}

// Digest implements agent.Agent.
func (c *connection) Digest(ctx context.Context, request agent.DigestRequest, onEvent func(agent.TransferEvent)) error {
	return c.follow(ctx, "verify "+request.Folder, wire.PathDigest, request, onEvent)
}

// Clean implements agent.Agent.
func (c *connection) Clean(ctx context.Context, folder string) error {
	return c.ask(ctx, "clean "+folder, wire.PathClean, wire.FolderRequest{Folder: folder}, &struct{}{})
}

// Uninstall implements agent.Agent.
func (c *connection) Uninstall(ctx context.Context) error {
	return c.ask(ctx, "uninstall the agent", wire.PathUninstall, struct{}{}, &struct{}{})
}

// Receive implements agent.Agent.
func (c *connection) Receive(ctx context.Context, request agent.ReceiveRequest, onEvent func(agent.TransferEvent)) error {
	return c.follow(ctx, "receive into "+request.Folder, wire.PathReceive, request, onEvent)
}

// Send implements agent.Agent.
func (c *connection) Send(ctx context.Context, request agent.SendRequest, onEvent func(agent.TransferEvent)) error {
	return c.follow(ctx, "send from "+request.Folder, wire.PathSend, request, onEvent)
}

// follow makes a call that answers with events, and returns after the last of them.
func (c *connection) follow(ctx context.Context, step, path string, body any, onEvent func(agent.TransferEvent)) error {
	reader, err := c.post(ctx, step, path, body)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // Closing early cancels the call on the node, as is meant.
	for decoder := json.NewDecoder(reader); ; {
		var event agent.TransferEvent
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the events ended without a last one: %w", io.ErrUnexpectedEOF)
			}
			return c.broken(ctx, step, err)
		}
		if onEvent != nil {
			onEvent(event)
		}
		switch {
		case event.Error != "":
			return &agent.Error{Host: c.host, Step: step, Code: event.Code, Message: event.Error}
		case event.Done:
			return nil
		}
	}
}
