package hosttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

// Invocation is a command that runs in a container, by exec or as the container's own.
type Invocation struct {
	Host      *Host
	Container string
	Command   []string
	Env       []string
}

// Outcome is what a command does.
type Outcome struct {
	Stdout, Stderr string
	ExitCode       int
}

// Runner answers commands that the fleet does not know by itself; false leaves it to the next.
type Runner func(Invocation) (Outcome, bool)

// Answer adds a runner. The last added is asked first. Runners are called under the fleet's lock:
// they must not call back.
func (f *Fleet) Answer(runner Runner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runners = append([]Runner{runner}, f.runners...)
}

// execution is a created exec.
type execution struct {
	container *instance
	request   container.ExecCreateRequest
	outcome   Outcome
	started   bool
	done      bool
}

func (e *engineServer) createExec(w http.ResponseWriter, r *http.Request) {
	c := e.target(w, r)
	if c == nil {
		return
	}
	var request container.ExecCreateRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Cmd) == 0 {
		e.fail(w, http.StatusBadRequest, "No exec command specified")
		return
	}
	if !c.running() {
		e.fail(w, http.StatusConflict, "container %s is not running", c.id)
		return
	}
	id := newID()
	e.host.execs[id] = &execution{container: c, request: request}
	e.answer(w, http.StatusCreated, container.ExecCreateResponse{ID: id})
}

// startExec runs the command and sends its output over the raw connection.
func (e *engineServer) startExec(w http.ResponseWriter, r *http.Request) {
	var request container.ExecStartRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil && !errors.Is(err, io.EOF) {
		e.fail(w, http.StatusBadRequest, "invalid JSON: %v", err)
		return
	}
	e.host.fleet.mu.Lock()
	e.host.fleet.settle()
	run, ok := e.host.execs[r.PathValue("id")]
	if ok && !run.started {
		run.started, run.done = true, true
		e.host.note("exec", run.container.name+": "+strings.Join(run.request.Cmd, " "))
		run.outcome = run.container.execute(run.request)
	}
	e.host.fleet.mu.Unlock()
	if !ok {
		e.fail(w, http.StatusNotFound, "No such exec instance: %s", r.PathValue("id"))
		return
	}
	if request.Detach || r.Header.Get("Upgrade") == "" {
		w.WriteHeader(http.StatusOK)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		e.fail(w, http.StatusInternalServerError, "the connection cannot be taken over")
		return
	}
	conn, buffer, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, err = buffer.WriteString("HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\n" +
		"Connection: Upgrade\r\nUpgrade: tcp\r\nApi-Version: " + engineAPIVersion + "\r\n\r\n")
	for stream, text := range map[byte]string{streamStdout: run.outcome.Stdout, streamStderr: run.outcome.Stderr} {
		if err == nil && text != "" {
			err = frame(buffer, stream, text)
		}
	}
	if err == nil {
		_ = buffer.Flush() // The client may be gone.
	}
}

func (e *engineServer) inspectExec(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	run, ok := e.host.execs[id]
	if !ok {
		e.fail(w, http.StatusNotFound, "No such exec instance: %s", id)
		return
	}
	code := run.outcome.ExitCode
	e.answer(w, http.StatusOK, container.ExecInspectResponse{
		ID: id, ExitCode: &code, ContainerID: run.container.id,
		ProcessConfig: &container.ExecProcessConfig{Entrypoint: run.request.Cmd[0], Arguments: run.request.Cmd[1:]},
	})
}

// execute answers a command in a running container. The lock is held.
func (c *instance) execute(request container.ExecCreateRequest) Outcome {
	invocation := Invocation{
		Host: c.host, Container: c.name, Command: request.Cmd, Env: append(slices.Clone(c.config.Env), request.Env...),
	}
	if outcome, ok := c.host.respond(invocation); ok {
		return outcome
	}
	if node, ok := c.program.(*rayNode); ok && strings.HasPrefix(strings.Join(request.Cmd, " ")+" ", "ray stop ") {
		node.leave()
		return Outcome{Stdout: "Stopped all Ray processes.\n"}
	}
	return Outcome{ExitCode: exitNotFound, Stderr: fmt.Sprintf(
		"OCI runtime exec failed: exec failed: unable to start container process: exec: %q: "+
			"executable file not found in $PATH\n", request.Cmd[0])}
}

// respond asks the runners, then answers what every image can. The lock is held.
func (h *Host) respond(invocation Invocation) (Outcome, bool) {
	for _, runner := range h.fleet.runners {
		if outcome, ok := runner(invocation); ok {
			return outcome, true
		}
	}
	if command := invocation.Command; len(command) == 3 && command[0] == "python3" && strings.Contains(command[2], "importlib.metadata") {
		return Outcome{Stdout: `{"python": "3.12.3", "ray": "2.53.0", "vllm": "0.17.1"}` + "\n"}, true
	}
	if outcome, ok := aboutFlags(invocation.Command); ok {
		return outcome, true
	}
	switch strings.Join(invocation.Command, " ") {
	case "ray --version":
		return Outcome{Stdout: "ray, version 2.53.0\n"}, true
	case "vllm --version":
		return Outcome{Stdout: "0.17.1\n"}, true
	case "nvidia-smi -L":
		var list strings.Builder
		for i := range h.gpus {
			fmt.Fprintf(&list, "GPU %d: %s (UUID: %s)\n", i, gpuName, h.gpuUUID(i))
		}
		return Outcome{Stdout: list.String()}, true
	case "true":
		return Outcome{}, true
	}
	return Outcome{}, false
}
