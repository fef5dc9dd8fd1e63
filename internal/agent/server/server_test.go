package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// A pipe in place of a folder, opened to be read, would keep the call, and the agent behind its session.
func TestListNoFolder(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := start(t, server.Options{}).List(ctx, agent.ListRequest{Folder: pipe})
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got %v", err)
	}
	if writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		t.Error("the pipe is open for reading:", writer.Close())
	}
}

// A call that hangs, as on a dead file server, does not keep the agent when its session is over.
func TestStuckCall(t *testing.T) {
	folder := t.TempDir()
	near, far := net.Pipe()
	stuck, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	ended := make(chan error, 1)
	options := server.Options{LeaveTimeout: 10 * time.Millisecond, FreeBytes: func(string) (int64, error) {
		close(stuck)
		<-free
		return 0, nil
	}}
	helper, err := client.Start(t.Context(), "spark-a", client.StarterFunc(func(context.Context, string) (*client.Process, error) {
		go func() { ended <- server.Serve(context.WithoutCancel(t.Context()), far, options) }()
		return &client.Process{
			Stdin: near, Stdout: near, Stderr: func() string { return "" }, Wait: func() (int, error) { return 0, nil }, Close: near.Close,
		}, nil
	}), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = helper.List(t.Context(), agent.ListRequest{Folder: folder}) }() // It fails with the session.
	<-stuck
	_ = near.Close()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "a file system hangs") {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
}

// A question is small; one that is not would fill the memory that a model needs.
func TestHugeQuestion(t *testing.T) {
	near, far := net.Pipe()
	go func() { _ = server.Serve(t.Context(), far, server.Options{ReadOnly: true}) }() // It ends with the pipe.
	first := make([]byte, 1)
	for lines := 0; lines < 2; { // An empty one, and the greeting.
		if _, err := near.Read(first); err != nil {
			t.Fatal(err)
		}
		if first[0] == '\n' {
			lines++
		}
	}
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	for _, path := range []string{wire.PathList, wire.PathFacts, wire.PathContainers} {
		body := io.MultiReader(strings.NewReader(`{"folder":"/`), strings.NewReader(strings.Repeat("a", 1<<20)), strings.NewReader(`"}`))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agent"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(response.Body); response.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "too large") {
			t.Errorf("%s: %d %s %v", path, response.StatusCode, text, err)
		}
		_ = response.Body.Close() // It has been read.
	}
}
