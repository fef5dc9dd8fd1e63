package client

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

// inProcess is a node whose every command is an agent in this process.
func inProcess(t *testing.T, options server.Options) Starter {
	t.Helper()
	return StarterFunc(func(context.Context, string) (*Process, error) {
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(context.WithoutCancel(t.Context()), far, options) }()
		return &Process{
			Stdin: near, Stdout: near, Stderr: func() string { return "" },
			Wait: func() (int, error) { return 0, <-ended }, Close: near.Close,
		}, nil
	})
}

func dial(t *testing.T, options server.Options) agent.Agent {
	t.Helper()
	helper, err := Start(t.Context(), "10.1.230.180", inProcess(t, options), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := helper.Close(); err != nil {
			t.Error(err)
		}
	})
	return helper
}

func TestFacts(t *testing.T) {
	options := server.Options{
		Hostname: "spark-a", Architecture: "arm64", User: &agent.User{Name: "aurora"},
		NvidiaSMI: func(context.Context) (string, error) { return "0, NVIDIA GB10, GPU-1, 580.95.05\n", nil },
	}
	helper := dial(t, options)
	facts, err := helper.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if facts.Hostname != "spark-a" || facts.Architecture != "arm64" || facts.User.Name != "aurora" || len(facts.GPUs) != 1 {
		t.Errorf("got %+v", facts)
	}
}

func TestCancelEndsTheWork(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	helper := dial(t, server.Options{NvidiaSMI: func(ctx context.Context) (string, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	_, err := helper.Facts(ctx)
	var failed *agent.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &failed) || failed.Host != "10.1.230.180" || failed.Step != "read facts" {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the work goes on")
	}
}

func TestListAndClean(t *testing.T) {
	root := t.TempDir()
	helper := dial(t, server.Options{
		PathRoot: root, Home: "/home/aurora", User: &agent.User{Name: "aurora"},
		FreeBytes: func(string) (int64, error) { return 12345, nil },
	})
	folder := filepath.Join(root, "home/aurora/models/tiny")
	if err := os.MkdirAll(filepath.Join(folder, ".spark-partial"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	listing, err := helper.List(t.Context(), agent.ListRequest{Folder: "~/models/tiny"})
	if err != nil {
		t.Fatal(err)
	}
	if len(listing.Files) != 1 {
		t.Fatalf("got %+v", listing)
	}
	listing.Files[0].Modified, listing.Files[0].Stamp, listing.Files[0].Fingerprint = 0, "", ""
	want := agent.Listing{Folder: "/home/aurora/models/tiny", Exists: true, FreeBytes: 12345, Files: []agent.File{
		{Name: "config.json", Size: 2},
	}}
	if diff := cmp.Diff(want, listing); diff != "" {
		t.Error(diff)
	}
	if err := helper.Clean(t.Context(), "/home/aurora/models/tiny"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, ".spark-partial")); err == nil {
		t.Error("unfinished copies are still there")
	}
	if _, err := helper.List(t.Context(), agent.ListRequest{Folder: "models"}); err == nil || !strings.Contains(err.Error(), `10.1.230.180: list models: "models" is not an absolute path`) {
		t.Errorf("got %v", err)
	}
}

func TestTransferBetweenAgents(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "models"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "models/weights"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := server.Options{User: &agent.User{Name: "aurora"}, ConnectTimeout: 5 * time.Second}
	options.PathRoot = source
	from := dial(t, options)
	options.PathRoot = target
	to := dial(t, options)
	secret := strings.Repeat("ab", 32)
	list := []agent.File{{Name: "weights", Size: 10}}
	listening, done := make(chan string, 1), make(chan error, 1)
	var finished *agent.File
	go func() {
		done <- to.Receive(t.Context(), agent.ReceiveRequest{Folder: "/models", Address: "127.0.0.3", Secret: secret, Files: list}, func(event agent.TransferEvent) {
			if event.Listening != "" {
				listening <- event.Listening
			}
			if event.Finished != nil {
				finished = event.Finished
			}
		})
	}()
	if err := from.Send(t.Context(), agent.SendRequest{Folder: "/models", Source: "127.0.0.2", Target: <-listening, Secret: secret, Files: list}, nil); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(target, "models/weights")); err != nil || string(content) != "0123456789" {
		t.Errorf("got %q, %v", content, err)
	}
	if finished == nil || finished.SHA256 != "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882" {
		t.Errorf("finished is %+v", finished)
	}
	// A failed transfer is an *agent.Error with its class.
	err := from.Send(t.Context(), agent.SendRequest{Folder: "/models", Source: "127.0.0.2", Target: "127.0.0.3:1", Secret: secret, Files: list}, nil)
	var failed *agent.Error
	if !errors.As(err, &failed) || failed.Code != agent.TransferConnect || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsAListener(t *testing.T) {
	helper := dial(t, server.Options{PathRoot: t.TempDir()})
	listening, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- helper.Receive(t.Context(), agent.ReceiveRequest{Folder: "/m", Address: "127.0.0.3", Secret: strings.Repeat("ab", 32),
			Files: []agent.File{{Name: "x", Size: 1}}}, func(event agent.TransferEvent) { listening <- event.Listening })
	}()
	address := <-listening
	if err := helper.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("the call did not fail")
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		t.Errorf("something listens still at %s: %v", address, conn.Close())
	}
	if _, err := helper.Facts(t.Context()); err == nil {
		t.Error("a closed agent answers")
	}
}

func TestUninstall(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "spark-stack")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"spark-agent-0123456789ab", "spark-agent-ba9876543210", ".upload-77", "notes"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dial(t, server.Options{Executable: filepath.Join(folder, "notes")}).Uninstall(t.Context()); err == nil {
		t.Error("a program that is not ours is removed")
	}
	helper := dial(t, server.Options{Executable: filepath.Join(folder, "spark-agent-0123456789ab")})
	if err := helper.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes" {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestGreetingSkipsNoise(t *testing.T) {
	for name, before := range map[string]string{
		"nothing": "", "lines": "Welcome to DGX OS\n\n3 updates\n", "unfinished line": "loading…", "long line": strings.Repeat("x", 10000),
	} {
		output := io.MultiReader(strings.NewReader(before), strings.NewReader("\n"+"@spark-agent:3f9c1d@ hello {}\r\nPRI"))
		text, _, err := greeting(reader(output))
		if err != nil || text != "hello {}" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, noise, err := greeting(reader(strings.NewReader("This account is not available.\n"))); !errors.Is(err, errNoGreeting) || noise == "" {
		t.Errorf("%q, %v", noise, err)
	}
	if _, _, err := greeting(reader(strings.NewReader(strings.Repeat("y\n", 1<<20)))); !errors.Is(err, errNoGreeting) {
		t.Error(err)
	}
}
