package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// noMessage is an empty message of gRPC: not compressed, of no length. The questions that pass have no
// other request.
var noMessage = []byte{0, 0, 0, 0, 0}

// program passes a question on to a program of this node: the GCS, or vLLM's server.
func (s *server) program(r *http.Request, rest string) (passed, error) {
	protocol, err := filter.Program(r.Method, rest)
	if err != nil {
		return passed{}, err
	}
	own, err := s.options.facts().Addresses()
	if err != nil {
		return passed{}, err
	}
	target, err := filter.Own(r.Header.Get(wire.HeaderTarget), own)
	if err != nil {
		return passed{}, err
	}
	url := "http://" + target.String() + rest
	transport, keep := s.lines.http, []string{"Content-Type"}
	var body io.Reader
	if protocol == filter.GRPC {
		transport, keep = s.lines.grpc, []string{"Content-Type", "Grpc-Status", "Grpc-Message"}
		body = bytes.NewReader(noMessage)
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, url, body) //nolint:gosec // The filter knows each path, and the address is this node's own.
	if err != nil {
		return passed{}, err
	}
	if protocol == filter.GRPC {
		request.Header.Set("Content-Type", "application/grpc")
		request.Header.Set("Te", "trailers")
		if err := s.authorize(r.Context(), request, target, r.Header); err != nil {
			return passed{}, err
		}
	}
	answer, err := ask(transport, request, keep...)
	if err != nil {
		return passed{}, broken(err, "nothing answers at "+target.String())
	}
	return answer, nil
}

// authorize hands on the token of Ray that the client sent, or puts in that of the cluster it names: a
// client that may only look does not see the node's secrets. For the same reason only a listener of root,
// as the GCS in its container is, or of the login user gets the node's token: anybody may listen on a port.
func (s *server) authorize(ctx context.Context, request *http.Request, target netip.AddrPort, asked http.Header) error {
	token := asked.Get("Authorization")
	if cluster := asked.Get(wire.HeaderRayToken); cluster != "" {
		if err := s.options.trustListener(target); err != nil {
			return err
		}
		secret, err := s.readSecret(ctx, wire.SecretRequest{Name: agent.RayToken(cluster)})
		if err != nil {
			return err
		}
		token = "Bearer " + secret.Value
		if !secret.Found {
			token = ""
		}
	}
	if strings.HasPrefix(token, "Bearer ") {
		request.Header.Set("Authorization", token)
	}
	return nil
}
