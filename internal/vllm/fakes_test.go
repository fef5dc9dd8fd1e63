package vllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// The image and model of the tests.
const (
	image   = "registry.example/vllm:1"
	imageID = "sha256:aaaa"
)

// deployment is a model on two nodes.
func deployment() Spec {
	return Spec{
		Name: "qwen", Source: weights.Source{Path: "/models/qwen"}, Image: image, ServedName: "qwen", TensorParallel: 2, Port: 8000,
		Cluster: ClusterRef{
			Name: "pair", Image: image, Address: "192.168.200.12:6379", GPUTotal: 2, Session: "c0fc6ca4", WeightsDir: "/models",
			Members: []Member{
				{Host: "10.1.230.181", Name: "aurora-2", Role: ray.Worker, Address: "192.168.200.13"},
				{Host: "10.1.230.180", Name: "aurora-1", Role: ray.Head, Address: "192.168.200.12"},
			},
		},
	}
}

// spark are the facts of a node with this fabric address.
func spark(name, address string) agent.Facts {
	return agent.Facts{
		Hostname: name, User: agent.User{Home: "/home/spark"},
		Interfaces: []agent.Interface{{Name: "enp1s0f0np0", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix(address + "/24")}}},
		RDMA: []agent.RDMADevice{{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true,
			GIDs: []agent.GID{{Index: 3, Address: netip.MustParseAddr(address)}}}},
	}
}

// moment is how a started server is from a time on.
type moment struct {
	after time.Duration
	log   string // added
	// status of the container; empty is "running".
	status string
	exit   int
	// api answers; nil refuses connections.
	api http.Handler
}

// world is the head's node: its machine, engine and agent.
type world struct {
	fleet.Machine // nil: any other call is a fault of the test
	host          string
	facts         agent.Facts
	images        map[string]engine.Image
	listing       agent.Listing
	unreachable   error

	lock       sync.Mutex
	containers []engine.Container
	journal    []string
	script     []moment
	started    time.Time
	refuse     error // of Start
	rayLog     string
	secrets    map[string]string
	changed    int
}

func head() *world {
	return &world{
		host: "10.1.230.180", facts: spark("aurora-1", "192.168.200.12"),
		images:  map[string]engine.Image{image: {ID: imageID, Env: map[string]string{"PATH": "/bin"}}, imageID: {ID: imageID, Env: map[string]string{"PATH": "/bin"}}},
		listing: agent.Listing{Folder: "/models/qwen", Exists: true, Files: []agent.File{{Name: "config.json", Size: 7}}},
	}
}

// both are the machines of deployment, the worker idle.
func both(first *world) Machines {
	worker := &world{host: "10.1.230.181", facts: spark("aurora-2", "192.168.200.13"), listing: agent.Listing{Folder: "/models/qwen"}}
	return Machines{first.host: first, worker.host: worker}
}

// serving puts a running server of the deployment, and its Ray container, on the node.
func (w *world) serving(t *testing.T, spec Spec, change func(*engine.Container)) {
	t.Helper()
	made, err := ContainerSpec(spec, Node{Facts: w.facts, ImageEnv: w.images[imageID].Env})
	if err != nil {
		t.Fatal(err)
	}
	made.Env["PATH"] = "/bin"
	rayID := strings.Repeat("e", 64)
	made.IPCMode, made.PIDMode = "container:"+rayID, "container:"+rayID
	made.Entrypoint = nil
	server := engine.Container{ID: "c0003", Spec: made, ImageID: imageID, Status: "running"}
	if change != nil {
		change(&server)
	}
	w.containers = []engine.Container{server, {ID: rayID, ImageID: imageID, Status: "running", Spec: engine.ContainerSpec{Name: "ray-pair"}}}
}

func (w *world) note(format string, args ...any) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.journal = append(w.journal, fmt.Sprintf(format, args...))
}

func (w *world) Host() string                               { return w.host }
func (w *world) Facts(context.Context) (agent.Facts, error) { return w.facts, w.unreachable }
func (w *world) Agent(context.Context) (agent.Agent, error) {
	return fakeAgent{world: w}, w.unreachable
}
func (w *world) Engine(context.Context) (engine.Engine, error) {
	return fakeEngine{world: w}, w.unreachable
}
func (w *world) Containers(context.Context) ([]engine.Container, error) {
	return w.containers, w.unreachable
}

func (w *world) Changed() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.changed++
}

func (w *world) Image(_ context.Context, reference string) (engine.Image, error) {
	found, exists := w.images[reference]
	if !exists {
		return engine.Image{}, engine.ErrNotFound
	}
	return found, nil
}

// now is the last moment that has come; the log is all until then.
func (w *world) now() (moment, string) {
	current, log := moment{}, ""
	for _, one := range w.script {
		if time.Since(w.started) >= one.after {
			current, log = one, log+one.log
		}
	}
	return current, log
}

func (w *world) HTTP() http.RoundTripper {
	return &http.Transport{DialContext: w.dial, DisableKeepAlives: true}
}

func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	current, _ := w.now()
	if current.api == nil || current.status != "" {
		return nil, errors.New("connection refused: " + address)
	}
	near, far := net.Pipe()
	server := &http.Server{Handler: current.api, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(&single{conn: far}) }()
	context.AfterFunc(ctx, func() { _ = far.Close() })
	return near, nil
}

// single is a listener for one connection.
type single struct {
	net.Listener
	lock sync.Mutex
	conn net.Conn
}

func (s *single) Addr() net.Addr { return &net.TCPAddr{} }
func (s *single) Close() error   { return nil }

func (s *single) Accept() (net.Conn, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.conn == nil {
		return nil, net.ErrClosed
	}
	conn := s.conn
	s.conn = nil
	return conn, nil
}

type fakeAgent struct {
	agent.Agent
	world *world
}

func (f fakeAgent) List(context.Context, agent.ListRequest) (agent.Listing, error) {
	return f.world.listing, nil
}

func (f fakeAgent) Clean(_ context.Context, folder string) error {
	f.world.note("clean %s", folder)
	return nil
}

func (f fakeAgent) ReadOnly() bool { return false }

func (f fakeAgent) ReadSecret(_ context.Context, name string) (string, bool, error) {
	value, found := f.world.secrets[name]
	return value, found, nil
}

func (f fakeAgent) WriteSecret(_ context.Context, name, value string) error {
	f.world.note("write %s", name)
	f.world.keep(name, value)
	return nil
}

func (f fakeAgent) RemoveSecret(_ context.Context, name string) error {
	if _, found := f.world.secrets[name]; found {
		f.world.note("remove %s", name)
		delete(f.world.secrets, name)
	}
	return nil
}

// keep puts a secret on the node.
func (w *world) keep(name, value string) {
	if w.secrets == nil {
		w.secrets = map[string]string{}
	}
	w.secrets[name] = value
}

type fakeEngine struct {
	engine.Engine
	world *world
}

func (f fakeEngine) Container(_ context.Context, name string) (engine.Container, error) {
	at := slices.IndexFunc(f.world.containers, func(one engine.Container) bool { return one.Spec.Name == name || one.ID == name })
	if at < 0 {
		return engine.Container{}, engine.ErrNotFound
	}
	container := f.world.containers[at]
	if container.ID == "new" {
		current, _ := f.world.now()
		container.Status, container.ExitCode = "running", current.exit
		if current.status != "" {
			container.Status = current.status
		}
		container.OOMKilled = current.exit == 137
	}
	return container, nil
}

func (f fakeEngine) Create(_ context.Context, spec engine.ContainerSpec) (string, error) {
	f.world.note("create %s", spec.Name)
	f.world.containers = append(f.world.containers, engine.Container{ID: "new", Spec: spec, ImageID: imageID, Status: "created"})
	return "new", nil
}

func (f fakeEngine) Start(_ context.Context, id string) error {
	f.world.note("start %s", id)
	f.world.started = time.Now()
	return f.world.refuse
}

func (f fakeEngine) Remove(_ context.Context, id string, grace time.Duration) error {
	f.world.note("remove %s within %s", id, grace)
	f.world.containers = slices.DeleteFunc(f.world.containers, func(one engine.Container) bool { return one.ID == id })
	return nil
}

func (f fakeEngine) Logs(_ context.Context, id string, _ int) (string, error) {
	if id != "new" {
		return f.world.rayLog, nil
	}
	_, log := f.world.now()
	return log, nil
}

// api is an OpenAI-compatible server; a status other than 200 is its answer to a completion.
func api(name string, status int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]any{"id": name}}})
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, _ *http.Request) {
		if status != http.StatusOK {
			http.Error(w, "EngineCore encountered an issue.", status)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"text": " world"}}})
	})
	return mux
}
