package ray

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcstest"
)

const testImage = "spark-lab/ray:2.60.0"

// world is two hosts, their containers, and the Ray that follows from the containers' commands.
type world struct {
	mu       sync.Mutex
	machines map[string]fleet.Machine
	hosts    []*fakeHost
	server   *gcstest.Server
	log      []string
	next     int
	nodes    []*rayNode
	groups   []gcs.PlacementGroup
	token    string             // that the head read when it started
	used     map[string]float64 // GPUs taken, by address
}

// rayNode is a raylet of the world.
type rayNode struct {
	node      gcs.Node
	container string
	born, end time.Time
}

// fakeHost is one machine with its engine and agent.
type fakeHost struct {
	fleet.Machine // nil: any other call is a fault of the test

	world      *world
	host       string
	facts      agent.Facts
	image      engine.Image
	containers []*engine.Container
	volumes    map[string]map[string]string // labels by name
	exits      bool                         // Ray ends a second after its start
	guess      string
	down       error
	hidden     bool // no GPU is visible in containers
	folder     error
	secrets    map[string]string
	ray        string // release in the image
	readOnly   bool
	memoryFrom time.Time
}

// newWorld makes the pair of the field; call it inside of a synctest bubble.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{machines: map[string]fleet.Machine{}, used: map[string]float64{}}
	w.server = gcstest.Start(gcstest.Config{Table: w.table, TokenNow: w.tokenNow, Actors: w.actors})
	t.Cleanup(w.server.Close)
	for i, host := range []string{"10.1.230.180", "10.1.230.181"} {
		h := &fakeHost{world: w, host: host, guess: host, volumes: map[string]map[string]string{}, facts: factsOf(i), secrets: map[string]string{}, ray: "2.60.0",
			image: engine.Image{ID: "sha256:" + strings.Repeat("a", 64), Architecture: "arm64", Env: map[string]string{"PATH": "/usr/bin", "LANG": "C.UTF-8"}}}
		w.hosts = append(w.hosts, h)
		w.machines[host] = h
	}
	return w
}

// factsOf are those of aurora-1 and aurora-2.
func factsOf(i int) agent.Facts {
	fabric := fmt.Sprintf("192.168.200.%d", 12+i)
	return agent.Facts{
		Hostname: fmt.Sprintf("aurora-%d", i+1), Architecture: "arm64", User: agent.User{Name: "aurora", Home: "/home/aurora"},
		Interfaces: []agent.Interface{
			{Name: "enP7s7", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.1.230.%d/24", 180+i))}},
			{Name: "docker0", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}},
			{Name: "enp1s0f0np0", Up: true, PhysicalPort: "p0", Addresses: []netip.Prefix{netip.MustParsePrefix(fabric + "/24")}},
		},
		RDMA: []agent.RDMADevice{{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true,
			GIDs: []agent.GID{{Index: 3, Address: netip.MustParseAddr(fabric)}}}},
		GPUs: []agent.GPU{{Name: "NVIDIA GB10"}},
	}
}

// pairSpec is the declared cluster over them.
func pairSpec() Spec {
	return Spec{Name: "pair", Image: testImage, Port: 6379, Members: []Member{
		{Host: "10.1.230.180", Name: "aurora-1", Role: Head, Address: "192.168.200.12", GPUs: 1},
		{Host: "10.1.230.181", Name: "aurora-2", Role: Worker, Address: "192.168.200.13", GPUs: 1},
	}}
}

// table is what the GCS would answer now.
func (w *world) table() gcs.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	table := gcs.Table{Groups: w.groups}
	for _, one := range w.nodes {
		if time.Now().Before(one.born) {
			continue
		}
		node := one.node
		node.Alive = one.end.IsZero() || time.Now().Before(one.end)
		if !node.Alive {
			node.DeathReason = "health check failed"
		}
		node.Available = map[string]float64{"GPU": node.Total["GPU"] - w.used[node.Address]}
		table.Nodes = append(table.Nodes, node)
	}
	return table
}

// actors hold the GPUs that are used.
func (w *world) actors() []gcs.Actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	var actors []gcs.Actor
	for address := range w.used {
		actors = append(actors, gcs.Actor{Class: "RayWorkerProc", PID: 4711, Address: address}, gcs.Actor{Address: address})
	}
	return actors
}

func (w *world) tokenNow() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.token
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// journal is what was done, and is empty after.
func (w *world) journal() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

// begin reads `ray start` as Ray does.
func (h *fakeHost) begin(container *engine.Container) {
	container.Status, container.StartedAt = running, time.Now()
	command := strings.Join(container.Spec.Command, " ")
	if container.Spec.Command[0] == "python3" { // it prints and ends
		container.Status = "exited"
	}
	if !strings.HasPrefix(command, "ray start") {
		return
	}
	if h.exits {
		container.Status, container.ExitCode = "exited", 1
		return
	}
	if strings.Contains(command, "--head") {
		h.world.token = ""
		if container.Spec.Env[authMode] == "token" && h.ray > "2.52" {
			h.world.token = h.secrets[agent.RayToken(strings.TrimPrefix(container.Spec.Name, "ray-"))]
		}
	}
	address := h.guess
	gpus := 0.0
	for _, arg := range container.Spec.Command {
		if value, ok := strings.CutPrefix(arg, "--node-ip-address="); ok {
			address = value
		}
		if arg == "--num-gpus=1" {
			gpus = 1
		}
	}
	h.world.next++
	h.world.nodes = append(h.world.nodes, &rayNode{container: container.ID, born: time.Now().Add(2 * time.Second), node: gcs.Node{
		ID: fmt.Sprintf("%08x", h.world.next), Address: address, Hostname: h.facts.Hostname, Head: strings.Contains(command, "--head"),
		Total: map[string]float64{"GPU": gpus, "node:" + address: 1},
	}})
}

// end lets Ray notice the end of a container after a while.
func (w *world) end(container string, after time.Duration) {
	for _, node := range w.nodes {
		if node.container == container && node.end.IsZero() {
			node.end = time.Now().Add(after)
		}
	}
}

// put adds a container that somebody else started.
func (h *fakeHost) put(spec engine.ContainerSpec) *engine.Container {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	container := h.make(spec)
	h.begin(container)
	return container
}

func (h *fakeHost) make(spec engine.ContainerSpec) *engine.Container {
	h.world.next++
	env := map[string]string{}
	for name, value := range h.image.Env {
		env[name] = value
	}
	for name, value := range spec.Env {
		env[name] = value
	}
	spec.Env = env
	container := &engine.Container{ID: fmt.Sprintf("c%04d", h.world.next), Spec: spec, ImageID: h.image.ID, Status: "created"}
	h.containers = append(h.containers, container)
	return container
}

func (h *fakeHost) listens() bool {
	return slices.ContainsFunc(h.containers, func(one *engine.Container) bool {
		return one.Status == running && slices.Contains(one.Spec.Command, "--head")
	})
}

func (h *fakeHost) Host() string { return h.host }

func (h *fakeHost) Facts(context.Context) (agent.Facts, error) {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	facts := h.facts
	if !h.memoryFrom.IsZero() { // the driver gives back 1 GiB a second, up to a hundred
		facts.Memory.Available = min(int64(time.Since(h.memoryFrom)/time.Second), 100) << 30
	}
	if h.listens() {
		facts.Listening = append(slices.Clone(facts.Listening), 6379)
	}
	return facts, h.down
}

func (h *fakeHost) Containers(context.Context) ([]engine.Container, error) {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	var all []engine.Container
	for _, one := range h.containers {
		all = append(all, *one)
	}
	return all, h.down
}

func (h *fakeHost) Image(_ context.Context, reference string) (engine.Image, error) {
	if reference != testImage && reference != h.image.ID || h.image.ID == "" {
		return engine.Image{}, fmt.Errorf("image %s: %w", reference, engine.ErrNotFound)
	}
	return h.image, h.down
}

func (h *fakeHost) Changed() {}

func (h *fakeHost) Agent(context.Context) (agent.Agent, error) { return &fakeAgent{host: h}, h.down }

func (h *fakeHost) Engine(context.Context) (engine.Engine, error) {
	return &fakeEngine{host: h}, h.down
}

func (h *fakeHost) HTTP() http.RoundTripper {
	transport := gcs.Transport(h.dial)
	transport.DisableKeepAlives = true // Nobody closes it.
	return asksForTokens{h, transport}
}

// asksForTokens puts the node's token in, as the agent does.
type asksForTokens struct {
	host *fakeHost
	next http.RoundTripper
}

func (a asksForTokens) RoundTrip(request *http.Request) (*http.Response, error) {
	if cluster := request.Header.Get("X-Spark-Ray-Token"); cluster != "" {
		a.host.world.mu.Lock()
		token := a.host.secrets[agent.RayToken(cluster)]
		a.host.world.mu.Unlock()
		request = request.Clone(request.Context())
		request.Header.Del("X-Spark-Ray-Token")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return a.next.RoundTrip(request)
}

func (h *fakeHost) dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.world.mu.Lock()
	listens := h.listens()
	h.world.mu.Unlock()
	if _, port, err := net.SplitHostPort(address); err != nil || port != "6379" || !listens {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return h.world.server.Dial(ctx, network, address)
}

// fakeAgent makes folders and keeps secrets.
type fakeAgent struct {
	agent.Agent
	host *fakeHost
}

func (a *fakeAgent) ReadOnly() bool { return a.host.readOnly }

func (a *fakeAgent) ReadSecret(_ context.Context, name string) (string, bool, error) {
	a.host.world.mu.Lock()
	defer a.host.world.mu.Unlock()
	value, found := a.host.secrets[name]
	return value, found, nil
}

func (a *fakeAgent) WriteSecret(_ context.Context, name, value string) error {
	a.host.world.mu.Lock()
	defer a.host.world.mu.Unlock()
	a.host.secrets[name] = value
	return nil
}

func (a *fakeAgent) RemoveSecret(_ context.Context, name string) error {
	a.host.world.mu.Lock()
	defer a.host.world.mu.Unlock()
	delete(a.host.secrets, name)
	return nil
}

func (a *fakeAgent) Receive(ctx context.Context, request agent.ReceiveRequest, onEvent func(agent.TransferEvent)) error {
	if a.host.folder != nil {
		return a.host.folder
	}
	a.host.world.mu.Lock()
	a.host.world.note("%s: make %s", a.host.facts.Hostname, request.Folder)
	a.host.world.mu.Unlock()
	onEvent(agent.TransferEvent{Listening: "127.0.0.1:40000"})
	<-ctx.Done()
	return ctx.Err()
}

// fakeEngine is the part of an engine that acts use.
type fakeEngine struct {
	engine.Engine
	host *fakeHost
}

func (e *fakeEngine) find(id string) (int, error) {
	at := slices.IndexFunc(e.host.containers, func(one *engine.Container) bool { return one.ID == id || one.Spec.Name == id })
	if at < 0 {
		return at, fmt.Errorf("container %s: %w", id, engine.ErrNotFound)
	}
	return at, nil
}

func (e *fakeEngine) Container(_ context.Context, id string) (engine.Container, error) {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	at, err := e.find(id)
	if err != nil {
		return engine.Container{}, err
	}
	return *e.host.containers[at], nil
}

func (e *fakeEngine) Create(_ context.Context, spec engine.ContainerSpec) (string, error) {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	if _, err := e.find(spec.Name); err == nil {
		return "", &engine.Error{Kind: engine.Conflict, Host: e.host.host, Step: "create", Message: "the name is in use"}
	}
	for _, mount := range spec.Mounts {
		if _, exists := e.host.volumes[mount.Source]; mount.Volume && !exists {
			e.host.volumes[mount.Source] = spec.Labels
		}
	}
	return e.host.make(spec).ID, nil
}

func (e *fakeEngine) Start(_ context.Context, id string) error {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	at, err := e.find(id)
	if err != nil {
		return err
	}
	e.host.world.note("%s: start %s", e.host.facts.Hostname, e.host.containers[at].Spec.Name)
	e.host.begin(e.host.containers[at])
	return nil
}

func (e *fakeEngine) Remove(_ context.Context, id string, _ time.Duration) error {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	at, err := e.find(id)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	e.host.world.note("%s: remove %s", e.host.facts.Hostname, e.host.containers[at].Spec.Name)
	if slices.Contains(e.host.containers[at].Spec.Command, "--head") {
		e.host.world.nodes = nil // The table dies with its GCS.
	}
	e.host.world.end(e.host.containers[at].ID, 13*time.Second)
	e.host.containers = slices.Delete(e.host.containers, at, at+1)
	return nil
}

func (e *fakeEngine) RemoveVolume(_ context.Context, name, label string) error {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	labels, exists := e.host.volumes[name]
	if !exists {
		return nil
	}
	if _, labelled := labels[label]; !labelled {
		return &engine.Error{Host: e.host.host, Step: "remove volume " + name, Err: engine.ErrUnlabelled}
	}
	e.host.world.note("%s: remove volume %s", e.host.facts.Hostname, name)
	delete(e.host.volumes, name)
	return nil
}

func (e *fakeEngine) Logs(_ context.Context, id string, _ int) (string, error) {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	if at, err := e.find(id); err == nil && e.host.containers[at].Spec.Command[0] == "python3" {
		return fmt.Sprintf(`{"python": "3.11.2", "ray": %q}`+"\n", e.host.ray), nil
	}
	return "ConnectionError: ray says why\n", nil
}

func (e *fakeEngine) Exec(_ context.Context, id string, command []string) (engine.ExecResult, error) {
	e.host.world.mu.Lock()
	defer e.host.world.mu.Unlock()
	at, err := e.find(id)
	if err != nil {
		return engine.ExecResult{}, err
	}
	if e.host.containers[at].Status != running {
		return engine.ExecResult{}, errors.New("container is not running")
	}
	switch strings.Join(command[:2], " ") {
	case "ray stop":
		e.host.world.note("%s: ray stop", e.host.facts.Hostname)
		e.host.world.end(e.host.containers[at].ID, 0)
		return engine.ExecResult{}, nil
	case "nvidia-smi -L":
		if e.host.hidden {
			return engine.ExecResult{ExitCode: 6, Stdout: "No devices found.\n"}, nil
		}
		return engine.ExecResult{Stdout: strings.Repeat("GPU 0: NVIDIA GB10 (UUID: GPU-1)\n", len(e.host.facts.GPUs))}, nil
	}
	if command[0] == "python3" {
		return engine.ExecResult{Stdout: fmt.Sprintf(`{"python": "3.11.2", "ray": %q}`+"\n", e.host.ray)}, nil
	}
	return engine.ExecResult{ExitCode: 127}, nil
}
