package gcs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// maxReply bounds an answer: 1000 dead nodes, which is all that a GCS keeps, are about 1 MB.
const maxReply = 32 << 20

// Transport reaches a GCS over connections that dial opens.
func Transport(dial Dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols: protocols,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},
	}
}

// dialError is a connection that was not opened.
type dialError struct{ cause error }

// Error implements error.
func (e *dialError) Error() string { return e.cause.Error() }

// Unwrap gives the cause.
func (e *dialError) Unwrap() error { return e.cause }

// unreached says whether a call got no connection to a GCS, or no way to ask for one.
func unreached(err error) bool {
	var dialled *dialError
	var helper *agent.Error
	return errors.As(err, &dialled) || errors.As(err, &helper) && helper.Code != agent.RefusedBroken
}

// statusError is a call that the other side answered with a failure.
type statusError struct {
	code    codes.Code
	message string
}

// Error implements error.
func (e *statusError) Error() string { return e.code.String() + ": " + e.message }

// kind is the class of the failure.
func (e *statusError) kind() Kind {
	switch e.code {
	case codes.Unauthenticated, codes.PermissionDenied:
		return Unauthenticated
	case codes.Unavailable:
		return Unreachable
	case codes.DeadlineExceeded:
		return Silent
	case codes.Unimplemented, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.DataLoss:
		return Unparsable
	default:
		return Failed
	}
}

// notGRPC is an answer that does not follow the protocol.
func notGRPC(format string, values ...any) error {
	return &statusError{code: codes.Internal, message: fmt.Sprintf(format, values...)}
}

// call makes one unary call of gRPC with an empty message. The protocol is HTTP/2 with a frame of five
// bytes around the message and the status in the trailer; spoken by hand it needs no handshake of its
// own and goes through the agent like any other question.
func (c *Client) call(ctx context.Context, method string, shown Credential) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+method, bytes.NewReader(make([]byte, 5)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	switch {
	case shown.Token != "":
		request.Header.Set("Authorization", "Bearer "+shown.Token)
	case shown.Cluster != "":
		request.Header.Set(wire.HeaderRayToken, shown.Cluster) // The agent on the way puts it in.
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It has been read to its end, or failed.
	frame, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/grpc") {
		return nil, notGRPC("the answer is HTTP status %d with %q", response.StatusCode, response.Header.Get("Content-Type"))
	}
	if err := status(response); err != nil {
		return nil, err
	}
	return message(frame)
}

// status reads how a call went.
func status(response *http.Response) error {
	value := func(name string) string {
		if text := response.Trailer.Get(name); text != "" {
			return text
		}
		return response.Header.Get(name) // of an answer without a message
	}
	code, err := strconv.ParseUint(value("Grpc-Status"), 10, 32)
	if err != nil {
		return notGRPC("the answer has no status")
	}
	if codes.Code(code) == codes.OK {
		return nil
	}
	text := value("Grpc-Message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &statusError{code: codes.Code(code), message: text}
}

// message takes the one message out of its frame.
func message(frame []byte) ([]byte, error) {
	if len(frame) < 5 || frame[0] != 0 {
		return nil, notGRPC("the answer has no message, or one that is compressed")
	}
	size := int64(binary.BigEndian.Uint32(frame[1:5]))
	if size != int64(len(frame)-5) {
		return nil, notGRPC("the message has %d of %d bytes", len(frame)-5, size)
	}
	return frame[5:], nil
}
