package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
)

// firstID is the id of the first container that is made.
var firstID = fmt.Sprintf("%064x", 1)

// fake is a small Docker engine: it keeps what was created and answers the calls that we make.
type fake struct {
	apiVersion string // in the answer to a ping
	release    string
	header     map[string]string // in every answer, over what a Docker engine says
	containers map[string]*container.InspectResponse
	mu         sync.Mutex
	requests   []*http.Request
	// answer takes over requests whose "METHOD path" (without version) it knows.
	answer map[string]http.HandlerFunc
	server *httptest.Server
}

func startFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{apiVersion: "1.44", release: "25.0.5", containers: map[string]*container.InspectResponse{}, answer: map[string]http.HandlerFunc{}}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

// dial stands for the SSH connection.
func (f *fake) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unix" || address != DefaultSocket {
		return nil, fmt.Errorf("dialled %s %s", network, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", f.server.Listener.Addr().String())
}

func (f *fake) engine(t *testing.T) Engine {
	t.Helper()
	e, err := New("spark-a", f.dial, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (f *fake) seen(method, path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := 0
	for _, r := range f.requests {
		if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
			count++
		}
	}
	return count
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	w.Header().Set("Api-Version", f.apiVersion)
	w.Header().Set("Server", "Docker/"+f.release+" (linux)")
	for name, value := range f.header {
		w.Header().Set(name, value)
	}
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/v"+f.apiVersion); ok {
		path = rest
	}
	if special := f.answer[r.Method+" "+path]; special != nil {
		special(w, r)
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/_ping":
	case path == "/containers/create":
		f.create(w, r)
	case path == "/containers/json":
		var list []container.Summary
		for _, c := range f.containers {
			list = append(list, container.Summary{ID: c.ID, Names: []string{c.Name}, Labels: c.Config.Labels})
		}
		reply(w, list)
	case parts[0] == "containers" && len(parts) >= 2:
		f.one(w, r, parts)
	default:
		refuse(w, http.StatusNotFound, "No such thing: "+path)
	}
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	var asked container.CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	name := r.URL.Query().Get("name")
	for _, c := range f.containers {
		if c.Name == "/"+name {
			refuse(w, http.StatusConflict, `Conflict. The container name "/`+name+`" is already in use`)
			return
		}
	}
	if asked.HostConfig.ShmSize == 0 {
		asked.HostConfig.ShmSize = 64 << 20
	}
	id := fmt.Sprintf("%064x", len(f.containers)+1)
	f.containers[id] = &container.InspectResponse{
		ID: id, Name: "/" + name, Image: "sha256:1234", Config: asked.Config, HostConfig: asked.HostConfig,
		State: &container.State{Status: "created", StartedAt: "0001-01-01T00:00:00Z"},
	}
	w.WriteHeader(http.StatusCreated)
	reply(w, container.CreateResponse{ID: id})
}

func (f *fake) one(w http.ResponseWriter, r *http.Request, parts []string) {
	var found *container.InspectResponse
	for _, c := range f.containers {
		if c.ID == parts[1] || c.Name == "/"+parts[1] {
			found = c
		}
	}
	if found == nil {
		refuse(w, http.StatusNotFound, "No such container: "+parts[1])
		return
	}
	action := strings.Join(parts[2:], "/")
	switch {
	case r.Method == http.MethodDelete:
		delete(f.containers, found.ID)
		w.WriteHeader(http.StatusNoContent)
	case action == "json":
		reply(w, found)
	case action == "start":
		found.State = &container.State{Status: "running", Running: true, StartedAt: "2026-11-30T10:20:30.5Z"}
		w.WriteHeader(http.StatusNoContent)
	case action == "stop":
		found.State.Status = "exited"
		w.WriteHeader(http.StatusNotModified)
	}
}

// frames writes a multiplexed stream: pairs of stream ("out" or "err") and text.
func frames(w http.ResponseWriter, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		kind := stdcopy.Stdout
		if pairs[i] == "err" {
			kind = stdcopy.Stderr
		}
		text := pairs[i+1]
		size := len(text)
		_, _ = w.Write([]byte{byte(kind), 0, 0, 0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
		_, _ = w.Write([]byte(text))
	}
}
