package hosttest

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// gcsServer answers the three questions that the product asks a GCS.
type gcsServer struct {
	head     *rayNode
	listener *backlog
	server   *grpc.Server
}

// rawCodec passes messages through as bytes: the messages are built by hand, see gcsmessages.go.
type rawCodec struct{}

var _ encoding.Codec = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	text, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("cannot marshal a %T", message)
	}
	return *text, nil
}

func (rawCodec) Unmarshal(text []byte, message any) error {
	target, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot unmarshal into a %T", message)
	}
	*target = append((*target)[:0], text...)
	return nil
}

func newGCSServer(head *rayNode) *gcsServer {
	g := &gcsServer{head: head, listener: newBacklog("gcs")}
	g.server = grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(g.handle))
	head.instance.host.fleet.tasks.Go(func() {
		_ = g.server.Serve(g.listener) // It only ends by stop.
	})
	return g
}

// stop is called under the lock, for which a running handler may wait; so it does not wait for it.
func (g *gcsServer) stop() {
	g.head.instance.host.fleet.tasks.Go(g.server.Stop)
}

func (g *gcsServer) handle(_ any, stream grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(stream)
	if !ok {
		return status.Error(codes.Internal, "the call has no method")
	}
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if token := g.head.token; token != "" {
		given, _ := metadata.FromIncomingContext(stream.Context())
		if values := given.Get("authorization"); len(values) != 1 || values[0] != "Bearer "+token {
			return status.Error(codes.Unauthenticated, "InvalidAuthToken")
		}
	}
	fleet := g.head.instance.host.fleet
	fleet.mu.Lock()
	fleet.settle()
	var reply []byte
	switch method {
	case "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo":
		reply = g.head.nodeTable()
	case "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus":
		reply = g.head.clusterStatus()
	case "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup":
		reply = g.head.placementGroups()
	default:
		fleet.mu.Unlock()
		return status.Errorf(codes.Unimplemented, "hosttest does not simulate %s", method)
	}
	fleet.mu.Unlock()
	return stream.SendMsg(&reply)
}
