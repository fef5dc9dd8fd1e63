//go:build lab

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/sshtest"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// forced is a real sshd whose key is bound to a command, and an engine that counts what it is asked.
type forced struct {
	server *sshtest.Server
	key    sshtest.Key
	socket string
	asked  chan string
}

// newForced binds a key to a command; $agent and $socket in it are the program and the engine.
func newForced(t *testing.T, command string) forced {
	t.Helper()
	program := filepath.Join(t.TempDir(), "spark-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/spark-agent")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	f := forced{key: sshtest.NewKey(t, sshtest.KeyOptions{}), socket: filepath.Join(t.TempDir(), "docker.sock"), asked: make(chan string, 100)}
	listen(t, "unix", f.socket, func(w http.ResponseWriter, r *http.Request) {
		f.asked <- r.Method + " " + r.URL.Path
		w.Header().Set("Api-Version", "1.47")
		w.Header().Set("Server", "Docker/28.3.3 (linux)")
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			_, _ = io.WriteString(w, `[{"Id":"01","Names":["/ray-pair"],"Image":"vllm:1","ImageID":"sha256:aa"}]`)
		case strings.HasSuffix(r.URL.Path, "/containers/01/json"):
			_, _ = io.WriteString(w, `{"Id":"01","Name":"/ray-pair","Image":"sha256:aa","Config":{"Image":"vllm:1"},"State":{"Status":"running"},"HostConfig":{}}`)
		default:
			_, _ = io.WriteString(w, `{"Id":"sha256:aa","Architecture":"arm64"}`)
		}
	})
	command = strings.NewReplacer("$agent", program, "$socket", f.socket).Replace(command)
	f.server = sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{fmt.Sprintf("restrict,command=%q %s", command, f.key.Public)}})
	return f
}

func listen(t *testing.T, network, address string, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }() // It ends by Close.
	t.Cleanup(func() { _ = web.Close() })
	return listener.Addr().String()
}

func (f forced) machine(t *testing.T) fleet.Machine {
	t.Helper()
	pool := fleet.NewPool(fleet.Defaults{
		Port: f.server.Port, User: f.server.User, PrivateKeyFile: f.key.File, KnownHostsFiles: []string{f.server.KnownHosts(t)}, ConfigFile: "none",
	})
	t.Cleanup(pool.Close)
	return pool.Machine(fleet.Connection{Host: f.server.Host, Socket: f.socket})
}

func TestLabForcedCommandAnswersAPlan(t *testing.T) {
	f := newForced(t, "$agent serve --read-only --docker-socket $socket")
	machine := f.machine(t)
	if facts, err := machine.Facts(t.Context()); err != nil || facts.Memory.Total == 0 {
		t.Errorf("facts: %v, %v", facts.Memory, err)
	}
	containers, err := machine.Containers(t.Context())
	if err != nil || len(containers) != 1 || containers[0].Spec.Name != "ray-pair" {
		t.Errorf("containers: %v, %v", containers, err)
	}
	if image, err := machine.Image(t.Context(), "other:1"); err != nil || image.ID != "sha256:aa" {
		t.Errorf("image: %v, %v", image, err)
	}
	health := listen(t, "tcp", "127.0.0.1:0", func(http.ResponseWriter, *http.Request) {})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+health+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := machine.HTTP().RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || response.Body.Close() != nil {
		t.Errorf("health: %v, %v", response, err)
	}
	helper, err := machine.Agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if listing, err := helper.List(t.Context(), agent.ListRequest{Folder: t.TempDir()}); err != nil || !listing.Exists {
		t.Errorf("listing: %v, %v", listing, err)
	}
	var refused *fleet.ReadOnlyError
	if err := machine.Writable(t.Context()); !errors.As(err, &refused) {
		t.Errorf("writable: %v", err)
	}
	if _, err := machine.Engine(t.Context()); !errors.As(err, &refused) {
		t.Errorf("engine: %v", err)
	}
	for close(f.asked); ; {
		asked, more := <-f.asked
		if !more {
			break
		}
		if !strings.HasPrefix(asked, "GET ") && !strings.HasPrefix(asked, "HEAD ") {
			t.Errorf("the engine was asked %q", asked)
		}
	}
}

// Whoever has the key and other programs than ours gets no further.
func TestLabForcedCommandRefusesAllElse(t *testing.T) {
	f := newForced(t, "$agent serve --read-only --docker-socket $socket")
	connection, err := sshx.Dial(t.Context(), sshx.Config{
		Host: f.server.Host, Port: f.server.Port, User: f.server.User, PrivateKeyFile: f.key.File, KnownHostsFiles: []string{f.server.KnownHosts(t)}, ConfigFile: "none",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	for network, address := range map[string]string{"tcp": "127.0.0.1:22", "unix": f.socket} {
		if conn, err := connection.DialContext(t.Context(), network, address); err == nil {
			t.Errorf("%s is forwarded: %v", network, conn.Close())
		}
	}

	mark := filepath.Join(t.TempDir(), "mark")
	local := filepath.Join(t.TempDir(), "local")
	if err := os.WriteFile(local, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := []string{"-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i", f.key.File}
	port := strconv.Itoa(f.server.Port)
	there := f.server.User + "@" + f.server.Host
	for name, command := range map[string][]string{
		"a command":           {"ssh", "-p", port, there, "touch " + mark},
		"a command and a tty": {"ssh", "-tt", "-p", port, there, "touch " + mark},
		"the full agent":      {"ssh", "-p", port, there, "spark-agent serve; touch " + mark},
		"quotes":              {"ssh", "-p", port, there, `'; touch ` + mark + `; '`},
		"a variable":          {"ssh", "-o", "SetEnv=LD_PRELOAD=" + local, "-o", "SetEnv=BASH_ENV=" + local, "-p", port, there, "touch " + mark},
		"a port forwarded":    {"ssh", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:22", "-p", port, there, "touch " + mark},
		"a copy":              {"scp", "-P", port, local, there + ":" + mark},
		"an old copy":         {"scp", "-O", "-P", port, local, there + ":" + mark},
		"a copy from there":   {"scp", "-P", port, there + ":/etc/hostname", mark},
		"sftp":                {"sftp", "-P", port, there},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		run := exec.CommandContext(ctx, command[0], append(options, command[1:]...)...)
		output, err := run.CombinedOutput() // Its input is empty: the agent ends at once.
		cancel()
		if _, missing := os.Stat(mark); missing == nil {
			t.Fatalf("%s: it was done: %s", name, output)
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: it hangs: %s", name, output)
		}
		if err == nil && command[0] != "ssh" {
			t.Errorf("%s succeeds: %s", name, output)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("the engine was asked %q", <-f.asked)
	}
}

func TestLabForcedCommandOfAnotherVersion(t *testing.T) {
	script := filepath.Join(t.TempDir(), "old-agent")
	text := "printf '\\n@spark-agent:3f9c1d@ hello {\"protocol\":1,\"architecture\":\"arm64\",\"read_only\":true}\\n'; exec cat >/dev/null\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newForced(t, "sh "+script)
	var old *client.OutdatedError
	_, err := f.machine(t).Facts(t.Context())
	if !errors.As(err, &old) || !strings.Contains(err.Error(), "speaks protocol 1, and this provider speaks "+strconv.Itoa(agent.ProtocolVersion)) ||
		!strings.Contains(old.Advice(), "terraform-provider-spark agent linux/arm64") {
		t.Errorf("got %v", err)
	}
}

// A line that is no agent's makes a sentence of what it said, and uploads nothing.
func TestLabForcedCommandThatIsNoAgent(t *testing.T) {
	f := newForced(t, "echo nothing to see here; exit 3")
	if _, err := f.machine(t).Facts(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing to see here") {
		t.Errorf("got %v", err)
	}
}

func TestLabForcedCommandWithAnotherSocket(t *testing.T) {
	f := newForced(t, "$agent serve --read-only")
	if _, err := f.machine(t).Containers(t.Context()); err == nil || !strings.Contains(err.Error(), "add --docker-socket "+f.socket) {
		t.Errorf("got %v", err)
	}
}
