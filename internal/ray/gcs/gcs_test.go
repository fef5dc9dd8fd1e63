package gcs_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcstest"
)

const address = "192.168.200.12:6379"

// pair is a cluster of two with a server on it and an earlier worker that died.
func pair() gcs.Table {
	return gcs.Table{
		Nodes: []gcs.Node{
			{
				ID: "0a01", Address: "192.168.200.12", Hostname: "aurora-1", Alive: true, Head: true,
				Total:     map[string]float64{"CPU": 2, "GPU": 1, "node:192.168.200.12": 1},
				Available: map[string]float64{"CPU": 2, "node:192.168.200.12": 0.999},
			},
			{
				ID: "0a02", Address: "192.168.200.13", Hostname: "aurora-2", Alive: true, Started: 1764600000123,
				Total:     map[string]float64{"CPU": 2, "GPU": 1, "node:192.168.200.13": 1},
				Available: map[string]float64{"CPU": 2, "GPU": 0.5},
			},
			{
				ID: "0a03", Address: "192.168.200.13", Hostname: "aurora-2",
				Total: map[string]float64{}, DeathReason: "health check failed due to missing too many heartbeats",
			},
		},
		Groups: []gcs.PlacementGroup{{
			ID: "0b01", Name: "vllm", State: gcs.GroupCreated,
			Bundles: []map[string]float64{{"GPU": 1, "node:192.168.200.12": 0.001}, {"GPU": 1}},
		}},
	}
}

func ask(t *testing.T, config gcstest.Config, token string) (gcs.Table, error) {
	t.Helper()
	server := gcstest.Start(config)
	defer server.Close()
	line := gcs.Transport(server.Dial)
	defer line.CloseIdleConnections()
	return gcs.New(line, address, gcs.Credential{Token: token}).Status(t.Context())
}

func TestStatus(t *testing.T) {
	// Nobody on this network may stand between us and the GCS.
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("https_proxy", "http://127.0.0.1:1")
	want := pair()
	want.Open = true
	table := pair()
	table.Groups = append(table.Groups, gcs.PlacementGroup{ID: "0b02", State: gcs.GroupRemoved})
	got, err := ask(t, gcstest.Config{Table: func() gcs.Table { return table }}, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	alive := got.Alive()
	if len(alive) != 2 || alive[0].GPUs() != 1 || alive[0].GPUsUsed() != 1 || alive[1].GPUsUsed() != 1 {
		t.Errorf("alive: %+v", alive)
	}
	if !alive[0].Offers("192.168.200.12") || alive[0].Offers("10.1.230.180") {
		t.Error("node resource")
	}
	if used := (gcs.Node{Total: map[string]float64{"GPU": 1}}).GPUsUsed(); used != 0 {
		t.Errorf("unknown use counts %d", used)
	}
}

func TestToken(t *testing.T) {
	config := gcstest.Config{Table: pair, Token: "secret-token"}
	if table, err := ask(t, config, "secret-token"); err != nil || table.Open {
		t.Error(err)
	}
	for _, token := range []string{"", "wrong"} {
		_, err := ask(t, config, token)
		wantKind(t, err, gcs.Unauthenticated)
	}
}

func TestUnparsable(t *testing.T) {
	_, err := ask(t, gcstest.Config{Table: pair, Garble: []byte("\x12\x05zz")}, "")
	wantKind(t, err, gcs.Unparsable)
	if !strings.Contains(err.Error(), "does not answer like a GCS") {
		t.Error(err)
	}
}

func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := ask(t, gcstest.Config{Mute: true}, "")
		wantKind(t, err, gcs.Silent)
		if took := time.Since(start); took != gcs.CallTimeout {
			t.Errorf("gave up after %s", took)
		}
	})
}

func TestUnreachable(t *testing.T) {
	client := gcs.New(gcs.Transport(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}), address, gcs.Credential{})
	start := time.Now()
	_, err := client.Status(t.Context())
	wantKind(t, err, gcs.Unreachable)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cause is lost: %v", err)
	}
	if time.Since(start) > time.Second {
		t.Error("a refusal must be told at once")
	}
}

// TestNotGRPC has a listener that greets like another protocol.
func TestNotGRPC(t *testing.T) {
	client := gcs.New(gcs.Transport(func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			buffer := make([]byte, 256)
			_, _ = theirs.Read(buffer)
			_, _ = theirs.Write([]byte("-ERR unknown command 'PRI'\r\n"))
			_ = theirs.Close()
		}()
		return ours, nil
	}), address, gcs.Credential{})
	_, err := client.Status(t.Context())
	wantKind(t, err, gcs.Unparsable)
}

func TestCancelled(t *testing.T) {
	server := gcstest.Start(gcstest.Config{Mute: true})
	defer server.Close()
	line := gcs.Transport(server.Dial)
	defer line.CloseIdleConnections()
	client := gcs.New(line, address, gcs.Credential{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := client.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func wantKind(t *testing.T, err error, kind gcs.Kind) {
	t.Helper()
	var typed *gcs.Error
	if !errors.As(err, &typed) || typed.Kind != kind {
		t.Errorf("got %#v (%v), want kind %d", typed, err, kind)
	}
}
