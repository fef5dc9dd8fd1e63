// Package gcstest is a GCS for tests: a real gRPC server in memory that answers the three questions
// of package gcs with messages encoded by hand, whatever table it is given.
package gcstest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// Server is one GCS. Close it.
type Server struct {
	listener *bufconn.Listener
	server   *grpc.Server
}

// Config says how the server behaves.
type Config struct {
	// Table gives the answer of the moment.
	Table func() gcs.Table
	// Token that a call must carry; empty for none. TokenNow, if set, is asked instead at each call.
	Token    string
	TokenNow func() string
	// Actors are those of living jobs; one without a class is dead.
	Actors func() []gcs.Actor
	// Garble replaces every answer by these bytes.
	Garble []byte
	// Mute never answers.
	Mute bool
}

// Start runs a server.
func Start(config Config) *Server {
	s := &Server{listener: bufconn.Listen(1 << 20)}
	s.server = grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error { return answer(config, stream) }))
	go func() {
		// Serve returns when Stop closes the listener; there is nobody to tell.
		_ = s.server.Serve(s.listener)
	}()
	return s
}

// Dial connects to the server, whatever the address.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return s.listener.DialContext(ctx)
}

// Close stops the server.
func (s *Server) Close() { s.server.Stop() }

func answer(config Config, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if config.Mute {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	meta, _ := metadata.FromIncomingContext(stream.Context())
	token := config.Token
	if config.TokenNow != nil {
		token = config.TokenNow()
	}
	if token != "" && !slices.Contains(meta.Get("authorization"), "Bearer "+token) {
		return status.Error(codes.Unauthenticated, "InvalidAuthToken: authentication token is missing or wrong")
	}
	if config.Garble != nil {
		return stream.SendMsg(&config.Garble)
	}
	method, _ := grpc.MethodFromServerStream(stream)
	var reply []byte
	switch method {
	case "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo":
		reply = Nodes(config.Table())
	case "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus":
		reply = Status(config.Table())
	case "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup":
		reply = Groups(config.Table())
	case "/ray.rpc.ActorInfoGcsService/GetAllActorInfo":
		if config.Actors != nil {
			reply = Actors(config.Actors())
		}
	default:
		return status.Errorf(codes.Unimplemented, "no method %s", method)
	}
	return stream.SendMsg(&reply)
}

// Nodes encodes GetAllNodeInfoReply.
func Nodes(table gcs.Table) []byte {
	reply := bytesField(nil, 1, varintField(nil, 1, 0)) // GcsStatus, OK.
	for _, node := range table.Nodes {
		message := bytesField(nil, 1, raw(node.ID))
		message = bytesField(message, 2, []byte(node.Address))
		message = bytesField(message, 3, []byte("/tmp/ray/session/sockets/raylet"))
		message = varintField(message, 5, 38123)
		if !node.Alive {
			message = varintField(message, 7, 1)
		}
		message = bytesField(message, 8, []byte(node.Hostname))
		message = resources(message, 11, node.Total)
		if node.Started > 0 {
			message = varintField(message, 23, node.Started)
		}
		if node.Head {
			message = varintField(message, 25, 1)
		}
		if node.DeathReason != "" {
			message = bytesField(message, 29, bytesField(varintField(nil, 1, 2), 2, []byte(node.DeathReason)))
		}
		reply = bytesField(reply, 2, message)
	}
	return reply
}

// Status encodes GetClusterStatusReply for the nodes that are alive.
func Status(table gcs.Table) []byte {
	var state []byte
	for _, node := range table.Nodes {
		if !node.Alive || node.Available == nil {
			continue
		}
		message := bytesField(nil, 1, raw(node.ID))
		message = resources(message, 4, node.Available)
		message = resources(message, 5, node.Total)
		message = bytesField(message, 10, []byte(node.Address))
		state = bytesField(state, 3, message)
	}
	return bytesField(nil, 2, state)
}

// Groups encodes GetAllPlacementGroupReply.
func Groups(table gcs.Table) []byte {
	var reply []byte
	for _, group := range table.Groups {
		message := bytesField(nil, 1, raw(group.ID))
		message = bytesField(message, 2, []byte(group.Name))
		for _, bundle := range group.Bundles {
			message = bytesField(message, 3, resources(nil, 2, bundle))
		}
		message = varintField(message, 5, uint64(group.State)) //nolint:gosec // States are small and positive.
		reply = bytesField(reply, 2, message)
	}
	return reply
}

// Actors encodes GetAllActorInfoReply.
func Actors(actors []gcs.Actor) []byte {
	var reply []byte
	for _, actor := range actors {
		state := uint64(2)
		if actor.Class == "" {
			state = 4
		}
		message := varintField(nil, 6, state)
		message = bytesField(message, 9, bytesField(nil, 2, []byte(actor.Address)))
		message = varintField(message, 16, uint64(actor.PID)) //nolint:gosec // A process id is positive.
		message = bytesField(message, 23, []byte(actor.Class))
		reply = bytesField(reply, 2, message)
	}
	return reply
}

func raw(id string) []byte {
	decoded, err := hex.DecodeString(id)
	if err != nil {
		panic(errors.Join(fmt.Errorf("id %q of a test table", id), err))
	}
	return decoded
}

func bytesField(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

func varintField(to []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), value)
}

func resources(to []byte, number protowire.Number, amounts map[string]float64) []byte {
	for name, amount := range amounts {
		entry := bytesField(nil, 1, []byte(name))
		entry = protowire.AppendFixed64(protowire.AppendTag(entry, 2, protowire.Fixed64Type), math.Float64bits(amount))
		to = bytesField(to, number, entry)
	}
	return to
}

// codec hands messages through as bytes.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message any) ([]byte, error) {
	if value, ok := message.(*[]byte); ok {
		return *value, nil
	}
	return nil, fmt.Errorf("cannot send %T", message)
}

func (codec) Unmarshal(data []byte, message any) error {
	value, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive into %T", message)
	}
	*value = slices.Clone(data)
	return nil
}
