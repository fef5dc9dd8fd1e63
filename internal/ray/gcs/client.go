package gcs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The three questions. None needs the cluster's id.
const (
	callNodes  = "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"
	callStatus = "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus"
	callGroups = "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup"
)

// maxReply bounds an answer: 1000 dead nodes, which is all that a GCS keeps, are about 1 MB.
const maxReply = 32 << 20

// Credential is what a call shows to the GCS. With neither, it shows nothing.
type Credential struct {
	// Token is Ray's.
	Token string
	// Cluster is the name of a cluster whose token only the agent on the way may see; it puts it in.
	Cluster string
}

// clusterKey is the metadata by which the agent on the way knows whose token to put in.
const clusterKey = "x-spark-ray-token"

// Client asks one GCS. It is safe for concurrent use and connects when it is first asked.
type Client struct {
	address    string
	credential Credential
	conn       *grpc.ClientConn

	mu sync.Mutex
	// dialErr is the outcome of the last dial; answered says that a GCS has spoken on this client.
	dialErr  error
	answered bool
}

// New makes a client for the GCS at address ("192.168.200.12:6379"), reached by dial, whose calls show
// the credential. Close it.
func New(dial Dialer, address string, credential Credential) (*Client, error) {
	c := &Client{address: address, credential: credential}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dial(ctx, "tcp", address)
			c.mu.Lock()
			c.dialErr = err
			c.mu.Unlock()
			return conn, err
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithAuthority(address),
		// A GCS that is starting refuses; the next question must not wait for gRPC's own patience.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: CallTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		return nil, &Error{Kind: Failed, Address: address, Call: "connect", Err: err}
	}
	c.conn = conn
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Status asks for the node table, the free resources and the placement groups, all at once, within
// CallTimeout. Every failure is an [*Error].
func (c *Client) Status(ctx context.Context) (Table, error) {
	var (
		table Table
		free  []availability
	)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		table.Nodes, err = ask(c.authorized(ctx), c, callNodes, decodeNodes)
		return err
	})
	group.Go(func() (err error) {
		table.Open, err = c.open(ctx)
		return err
	})
	group.Go(func() (err error) {
		free, err = ask(c.authorized(ctx), c, callStatus, decodeStatus)
		return err
	})
	group.Go(func() (err error) {
		table.Groups, err = ask(c.authorized(ctx), c, callGroups, decodeGroups)
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

// authorized adds the credential to a call.
func (c *Client) authorized(ctx context.Context) context.Context {
	switch {
	case c.credential.Token != "":
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.credential.Token)
	case c.credential.Cluster != "":
		return metadata.AppendToOutgoingContext(ctx, clusterKey, c.credential.Cluster)
	}
	return ctx
}

// open proves that the GCS refuses who shows nothing: a call that succeeds with the token tells
// nothing of that. Without a credential there is nothing to prove.
func (c *Client) open(ctx context.Context) (bool, error) {
	if c.credential == (Credential{}) {
		return true, nil
	}
	_, err := ask(ctx, c, callNodes, func([]byte) (struct{}, error) { return struct{}{}, nil })
	var failed *Error
	if errors.As(err, &failed) && failed.Kind == Unauthenticated {
		return false, nil
	}
	return err == nil, err
}

// ask makes one call with an empty request: for these three, it means "all".
func ask[T any](ctx context.Context, c *Client, call string, decode func([]byte) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var request, reply []byte
	if err := c.conn.Invoke(ctx, call, &request, &reply); err != nil {
		var none T
		return none, c.failure(call, err)
	}
	c.mu.Lock()
	c.answered = true
	c.mu.Unlock()
	value, err := decode(reply)
	if err != nil {
		return value, &Error{Kind: Unparsable, Address: c.address, Call: call, Err: err}
	}
	return value, nil
}

// failure gives a gRPC error its class.
func (c *Client) failure(call string, err error) error {
	failed := &Error{Address: c.address, Call: call, Err: err, Message: status.Convert(err).Message()}
	c.mu.Lock()
	dialErr, answered := c.dialErr, c.answered
	c.mu.Unlock()
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		failed.Kind = Unauthenticated
	case codes.Unavailable:
		switch {
		case dialErr != nil:
			failed.Kind, failed.Message, failed.Err = Unreachable, "", dialErr
		case answered:
			failed.Kind = Unreachable // It was there and is gone.
		default:
			failed.Kind = Unparsable // Connected, but no HTTP/2 came back.
		}
	case codes.DeadlineExceeded:
		failed.Kind, failed.Message = Silent, fmt.Sprintf("no answer within %s", CallTimeout)
		failed.Err = errors.Join(dialErr, err)
	case codes.Unimplemented, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.DataLoss:
		failed.Kind = Unparsable
	case codes.Canceled:
		failed.Err = errors.Join(context.Canceled, err)
	default:
		failed.Kind = Failed
	}
	return failed
}

// rawCodec hands messages through as bytes. Its name makes the content type that Ray expects.
type rawCodec struct{}

// Name implements encoding.Codec.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(message any) ([]byte, error) {
	if raw, ok := message.(*[]byte); ok {
		return *raw, nil
	}
	return nil, fmt.Errorf("cannot send %T as bytes", message)
}

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, message any) error {
	raw, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive bytes into %T", message)
	}
	*raw = append([]byte(nil), data...)
	return nil
}
