//go:build lab

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// lab is what lab/info prints.
type lab struct {
	User           string `json:"user"`
	PrivateKeyFile string `json:"private_key_file"`
	KnownHostsFile string `json:"known_hosts_file"`
	Images         struct {
		Ray string `json:"ray"`
	} `json:"images"`
	Nodes []struct {
		ManagementAddress string `json:"management_address"`
	} `json:"nodes"`
}

// connectLab gives the first node; the tests here run against a real sshd and a real engine.
func connectLab(t *testing.T) (sshx.Config, sshx.Client, lab) {
	t.Helper()
	printed, err := exec.CommandContext(t.Context(), "../../lab/info").Output()
	if err != nil {
		t.Fatalf("lab/info: %v", err)
	}
	var info lab
	if err := json.Unmarshal(printed, &info); err != nil {
		t.Fatal(err)
	}
	config := sshx.Config{
		Host: info.Nodes[0].ManagementAddress, User: info.User,
		PrivateKeyFile: info.PrivateKeyFile, KnownHostsFiles: []string{info.KnownHostsFile},
	}
	client, err := sshx.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return config, client, info
}

func newEngine(t *testing.T, host string, client sshx.Client, socket string) engine.Engine {
	t.Helper()
	e, err := engine.New(host, client.DialContext, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestLabContainer(t *testing.T) {
	config, client, info := connectLab(t)
	e := newEngine(t, config.Host, client, "")
	version, err := e.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", version)
	image, err := e.Image(t.Context(), info.Images.Ray)
	if err != nil || image.ID == "" || image.Architecture == "" || image.Env["PATH"] == "" {
		t.Fatalf("%+v, %v", image, err)
	}
	if _, err := e.Image(t.Context(), "spark-lab/absent:1"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("absent image: %v", err)
	}
	const name, volume = "transport-a", "transport-a-tmp"
	spec := engine.ContainerSpec{
		Name: name, Image: info.Images.Ray, Entrypoint: []string{},
		Command:     []string{"sh", "-c", "echo started; echo warned >&2; trap 'exit 7' TERM; while :; do sleep 0.1; done"},
		Env:         map[string]string{"VLLM_HOST_IP": "192.168.200.12"},
		Labels:      map[string]string{"io.spark-stack.test": "transport"},
		Mounts:      []engine.Mount{{Source: "/home", Target: "/home", ReadOnly: true}, {Source: volume, Target: "/tmp/ray", Volume: true}},
		NetworkMode: "host", IPCMode: "shareable", SharedMemory: 1 << 30, AllGPUs: true,
		Devices: []string{"/dev/infiniband"}, CapAdd: []string{"IPC_LOCK"}, UnlimitedMemlock: true,
	}
	guest := engine.ContainerSpec{
		Name: "transport-b", Image: info.Images.Ray, Entrypoint: []string{}, Command: []string{"sleep", "60"},
		NetworkMode: "host", IPCMode: "container:" + name, PIDMode: "container:" + name,
	}
	cleanup := func(ctx context.Context) {
		for _, n := range []string{guest.Name, name} {
			if err := e.Remove(ctx, n, time.Second); err != nil {
				t.Error(err)
			}
		}
		if err := e.RemoveVolume(ctx, volume, "io.spark-stack.test"); err != nil {
			t.Error(err)
		}
	}
	cleanup(t.Context())
	defer cleanup(context.WithoutCancel(t.Context()))

	id, err := e.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var failure *engine.Error
	if _, err := e.Create(t.Context(), spec); !errors.As(err, &failure) || failure.Kind != engine.Conflict {
		t.Errorf("second of the name: %v", err)
	}
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	seen, err := e.Container(t.Context(), name)
	if err != nil || seen.Status != "running" || time.Since(seen.StartedAt).Abs() > time.Minute || seen.ImageID != image.ID {
		t.Errorf("%+v, %v", seen, err)
	}
	for name, value := range spec.Env {
		if seen.Spec.Env[name] != value {
			t.Errorf("%s is %q", name, seen.Spec.Env[name])
		}
	}
	// The engine adds what the image has; apart from that, what comes back is what was asked for.
	seen.Spec.Env = spec.Env
	for label := range seen.Spec.Labels {
		if _, ours := spec.Labels[label]; !ours {
			delete(seen.Spec.Labels, label)
		}
	}
	if difference := cmp.Diff(spec, seen.Spec); difference != "" {
		t.Error(difference)
	}

	if _, err := e.Create(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), guest.Name); err != nil {
		t.Fatal(err)
	}
	joined, err := e.Container(t.Context(), guest.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("IPC %s, PID %s", joined.Spec.IPCMode, joined.Spec.PIDMode)
	if found := engine.SpecDifferences(guest, joined.Spec, map[string]string{id: name}); len(found) > 0 {
		t.Errorf("guest: %v", found)
	}

	result, err := e.Exec(t.Context(), name, []string{"sh", "-c", "echo out; echo err >&2; nvidia-smi -L >/dev/null && ls /dev/infiniband | wc -l; exit 4"})
	if err != nil || result.ExitCode != 4 || !strings.HasPrefix(result.Stdout, "out\n") || result.Stderr != "err\n" {
		t.Errorf("%+v, %v", result, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := e.Exec(ctx, name, []string{"sleep", "5"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled exec: %v", err)
	}
	text, err := e.Logs(t.Context(), name, 10)
	if err != nil || !strings.Contains(text, "started\n") || !strings.Contains(text, "warned\n") {
		t.Errorf("%q, %v", text, err)
	}
	found, err := e.Containers(t.Context(), "io.spark-stack.test", "transport-")
	if err != nil || len(found) != 2 || found[0].ID != id {
		t.Errorf("%d containers, %v", len(found), err)
	}
	if err := e.RemoveVolume(t.Context(), volume, "io.spark-stack.test"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("volume in use: %v", err)
	}
}

func TestLabTransport(t *testing.T) {
	config, client, _ := connectLab(t)
	t.Run("parallel channels", func(t *testing.T) {
		var wait sync.WaitGroup
		for range 40 {
			wait.Go(func() {
				conn, err := client.DialContext(t.Context(), "unix", engine.DefaultSocket)
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				_, _ = conn.Write([]byte("GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
				answer := make([]byte, 12)
				if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 200" {
					t.Errorf("%q, %v", answer, err)
				}
				_ = conn.Close()
			})
		}
		wait.Wait()
	})
	t.Run("parallel commands", func(t *testing.T) {
		var wait sync.WaitGroup
		for range 30 {
			wait.Go(func() {
				if out, err := sshx.Run(t.Context(), client, "cat; exit 3", strings.NewReader("in")); err != nil || out.ExitCode != 3 || string(out.Stdout) != "in" {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		wait.Wait()
	})
	t.Run("no socket", func(t *testing.T) {
		_, err := newEngine(t, config.Host, client, "/run/absent.sock").Version(t.Context())
		var failure *engine.Error
		var channel *sshx.Error
		if !errors.As(err, &failure) || failure.Kind != engine.Down || !errors.As(err, &channel) || channel.Kind != sshx.ConnectFailed {
			t.Errorf("%v", err)
		}
		t.Log(err)
	})
	t.Run("killed with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := sshx.Run(ctx, client, "exec sleep 4321", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		time.Sleep(500 * time.Millisecond)
		if out, err := sshx.Run(t.Context(), client, "pgrep -fx 'sleep 4321'", nil); err != nil || out.ExitCode != 1 {
			t.Errorf("still there: %s, %v", out.Stdout, err)
		}
	})
	t.Run("wrong user", func(t *testing.T) {
		other := config
		other.User = "nobody"
		_, err := sshx.Dial(t.Context(), other)
		var failure *sshx.Error
		if !errors.As(err, &failure) || failure.Kind != sshx.AuthFailed {
			t.Fatalf("%v", err)
		}
		t.Log(err, failure.Advice(), failure.Methods)
	})
	t.Run("unknown host", func(t *testing.T) {
		other := config
		other.KnownHostsFiles = []string{"/nonexistent"}
		_, err := sshx.Dial(t.Context(), other)
		var failure *sshx.Error
		if !errors.As(err, &failure) || failure.Kind != sshx.UnknownHostKey {
			t.Fatalf("%v", err)
		}
		t.Log(err, failure.Advice())
		other.HostKey = strings.Fields(failure.Offered)[1]
		pinned, err := sshx.Dial(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		_ = pinned.Close()
	})
	t.Run("jump", func(t *testing.T) {
		inner := config
		inner.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return client.DialContext(ctx, network, "127.0.0.1:22")
		}
		through, err := sshx.Dial(t.Context(), inner)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = through.Close() }()
		if out, err := sshx.Run(t.Context(), through, "echo there", nil); err != nil || string(out.Stdout) != "there\n" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
