package hosttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/common"
	"github.com/moby/moby/api/types/system"
)

// The engine's versions: a DGX OS release of 2026.
const (
	engineVersion    = "28.3.3"
	engineAPIVersion = "1.47"
)

// engineServer answers the part of Docker's HTTP API that the product uses.
type engineServer struct {
	host     *Host
	listener *backlog

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newEngineServer(host *Host) *engineServer {
	e := &engineServer{host: host, listener: newBacklog(dockerSocket), conns: map[net.Conn]struct{}{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", e.ping)
	handle := func(pattern string, handler http.HandlerFunc) { mux.Handle(pattern, e.locked(handler)) }
	handle("GET /version", e.version)
	handle("GET /info", e.info)
	handle("GET /images/{name...}", func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutSuffix(r.PathValue("name"), "/json")
		if !ok {
			e.unknown(w, r)
			return
		}
		r.SetPathValue("name", name)
		e.inspectImage(w, r)
	})
	handle("GET /containers/json", e.listContainers)
	handle("GET /containers/{id}/json", e.inspectContainer)
	handle("POST /containers/create", e.createContainer)
	handle("POST /containers/{id}/start", e.startContainer)
	handle("POST /containers/{id}/stop", e.stopContainer)
	handle("POST /containers/{id}/kill", e.killContainer)
	handle("DELETE /containers/{id}", e.removeContainer)
	mux.HandleFunc("POST /containers/{id}/wait", e.waitContainer)
	mux.HandleFunc("GET /containers/{id}/logs", e.containerLogs)
	handle("POST /containers/{id}/exec", e.createExec)
	mux.HandleFunc("POST /exec/{id}/start", e.startExec)
	handle("GET /exec/{id}/json", e.inspectExec)
	handle("GET /volumes", e.listVolumes)
	handle("POST /volumes/create", e.createVolume)
	handle("GET /volumes/{name}", e.inspectVolume)
	handle("DELETE /volumes/{name}", e.removeVolume)
	mux.HandleFunc("/", e.unknown)

	server := &http.Server{Handler: e.versioned(mux), ReadHeaderTimeout: time.Minute, ConnState: e.track}
	host.fleet.tasks.Go(func() { _ = server.Serve(e.listener) }) // It only ends by Close.
	host.fleet.tasks.Go(func() {
		<-host.fleet.ctx.Done()
		_ = e.listener.Close()
		_ = server.Close()
	})
	return e
}

var versionPrefix = regexp.MustCompile(`^/v1\.[0-9]+/`)

// versioned takes the API version off the path and refuses while the engine is down.
func (e *engineServer) versioned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.host.faults().engineDown {
			panic(http.ErrAbortHandler) // The process is gone, and its open connections with it.
		}
		if e.host.faults().engineFrozen {
			select {
			case <-r.Context().Done(): // The client has given up.
			case <-e.host.fleet.ctx.Done():
			}
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Api-Version", engineAPIVersion)
		w.Header().Set("Ostype", "linux")
		w.Header().Set("Server", "Docker/"+engineVersion+" (linux)")
		if prefix := versionPrefix.FindString(r.URL.Path); prefix != "" {
			r.URL.Path = "/" + strings.TrimPrefix(r.URL.Path, prefix)
		}
		next.ServeHTTP(w, r)
	})
}

// locked runs a handler under the fleet's lock, after the world has settled.
func (e *engineServer) locked(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The client may be slow to send and to read; it must not hold the world meanwhile.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // The client is gone.
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		buffer := &answerBuffer{header: w.Header()}
		func() {
			e.host.fleet.mu.Lock()
			defer e.host.fleet.mu.Unlock()
			e.host.fleet.settle()
			handler(buffer, r)
		}()
		w.WriteHeader(buffer.status)
		_, _ = w.Write(buffer.body.Bytes()) // A failed write means that the client is gone.
	})
}

// answerBuffer holds an answer back.
type answerBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *answerBuffer) Header() http.Header            { return b.header }
func (b *answerBuffer) WriteHeader(status int)         { b.status = status }
func (b *answerBuffer) Write(text []byte) (int, error) { return b.body.Write(text) }

// cut closes the engine's connections, as its end does.
func (e *engineServer) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		_ = conn.Close()
	}
}

func (e *engineServer) track(conn net.Conn, state http.ConnState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if state == http.StateClosed {
		delete(e.conns, conn)
	} else {
		e.conns[conn] = struct{}{}
	}
}

func (e *engineServer) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler) // The client is gone.
	}
}

func (e *engineServer) fail(w http.ResponseWriter, status int, format string, values ...any) {
	e.answer(w, status, common.ErrorResponse{Message: fmt.Sprintf(format, values...)})
}

func (e *engineServer) unknown(w http.ResponseWriter, r *http.Request) {
	e.fail(w, http.StatusNotImplemented, "hosttest does not simulate %s %s", r.Method, r.URL.Path)
}

func (e *engineServer) ping(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte("OK"))
	}
}

func (e *engineServer) version(w http.ResponseWriter, _ *http.Request) {
	e.answer(w, http.StatusOK, system.VersionResponse{
		Version: engineVersion, APIVersion: engineAPIVersion, MinAPIVersion: "1.24",
		Os: "linux", Arch: "arm64", KernelVersion: kernelVersion,
	})
}

func (e *engineServer) info(w http.ResponseWriter, _ *http.Request) {
	h := e.host
	runtimes := map[string]system.RuntimeWithStatus{"runc": {Runtime: system.Runtime{Path: "runc"}}}
	if !h.fault.noNVIDIARuntime {
		runtimes["nvidia"] = system.RuntimeWithStatus{Runtime: system.Runtime{Path: "nvidia-container-runtime"}}
	}
	running := 0
	for _, c := range h.containers {
		if c.running() {
			running++
		}
	}
	e.answer(w, http.StatusOK, system.Info{
		ID: h.name, Name: h.name, ServerVersion: engineVersion, OSType: "linux", Architecture: "aarch64",
		OperatingSystem: osName, KernelVersion: kernelVersion, NCPU: 20, MemTotal: h.memory[0],
		Driver: "overlay2", DockerRootDir: "/var/lib/docker", Runtimes: runtimes, DefaultRuntime: "runc",
		Containers: len(h.containers), ContainersRunning: running,
		ContainersStopped: len(h.containers) - running, Images: len(h.images),
	})
}
