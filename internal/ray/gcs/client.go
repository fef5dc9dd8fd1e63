package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
)

// Credential is what a call shows to the GCS. With neither, it shows nothing.
type Credential struct {
	// Token is Ray's.
	Token string
	// Cluster is the name of a cluster whose token only the agent on the way may see; it puts it in.
	Cluster string
}

// Client asks one GCS. It is safe for concurrent use.
type Client struct {
	address    string
	credential Credential
	transport  http.RoundTripper
	// answered says that a GCS has spoken on this client.
	answered atomic.Bool
}

// New makes a client for the GCS at address ("192.168.200.12:6379"), reached by transport: a fleet's
// machine, or Transport. Its calls show the credential.
func New(transport http.RoundTripper, address string, credential Credential) *Client {
	return &Client{address: address, credential: credential, transport: transport}
}

// Status asks for the node table, the free resources and the placement groups, all at once, within
// CallTimeout. Every failure is an [*Error].
func (c *Client) Status(ctx context.Context) (Table, error) {
	var (
		table Table
		free  []availability
	)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		table.Nodes, err = ask(ctx, c, c.credential, filter.GCSNodes, decodeNodes)
		return err
	})
	group.Go(func() (err error) {
		table.Open, err = c.open(ctx)
		return err
	})
	group.Go(func() (err error) {
		free, err = ask(ctx, c, c.credential, filter.GCSStatus, decodeStatus)
		return err
	})
	group.Go(func() (err error) {
		table.Groups, err = ask(ctx, c, c.credential, filter.GCSGroups, decodeGroups)
		return err
	})
	if err := group.Wait(); err != nil {
		return Table{}, err
	}
	for i := range table.Nodes {
		for _, one := range free {
			if one.id == table.Nodes[i].ID {
				table.Nodes[i].Available = one.available
			}
		}
	}
	return table, nil
}

// open proves that the GCS refuses who shows nothing: a call that succeeds with the token tells
// nothing of that. Without a credential there is nothing to prove.
func (c *Client) open(ctx context.Context) (bool, error) {
	if c.credential == (Credential{}) {
		return true, nil
	}
	_, err := ask(ctx, c, Credential{}, filter.GCSNodes, func([]byte) (struct{}, error) { return struct{}{}, nil })
	var failed *Error
	if errors.As(err, &failed) && failed.Kind == Unauthenticated {
		return false, nil
	}
	return err == nil, err
}

// ask makes one call with an empty request, which means "all" to each of those that are made here.
func ask[T any](ctx context.Context, c *Client, shown Credential, call string, decode func([]byte) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	reply, err := c.call(ctx, call, shown)
	if err != nil {
		var none T
		return none, c.failure(ctx, call, err)
	}
	c.answered.Store(true)
	value, err := decode(reply)
	if err != nil {
		return value, &Error{Kind: Unparsable, Address: c.address, Call: call, Err: err}
	}
	return value, nil
}

// failure gives a failed call its class.
func (c *Client) failure(ctx context.Context, call string, err error) error {
	failed := &Error{Address: c.address, Call: call, Err: err}
	var answer *statusError
	switch {
	case errors.As(err, &answer):
		failed.Kind, failed.Message = answer.kind(), answer.message
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failed.Kind, failed.Message = Silent, fmt.Sprintf("no answer within %s", CallTimeout)
		failed.Err = errors.Join(ctx.Err(), err)
	case ctx.Err() != nil:
		failed.Err = errors.Join(ctx.Err(), err)
	case unreached(err), c.answered.Load(): // It was there and is gone.
		failed.Kind = Unreachable
	default:
		failed.Kind = Unparsable // Connected, but no HTTP/2 came back.
	}
	return failed
}
