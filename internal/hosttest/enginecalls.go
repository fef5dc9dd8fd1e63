package hosttest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"

	"github.com/moby/moby/api/types/container"
)

// refused answers with an error of the engine.
func (e *engineServer) refused(w http.ResponseWriter, err error) {
	if r, ok := errors.AsType[*refusal](err); ok {
		e.fail(w, r.status, "%s", r.message)
		return
	}
	e.fail(w, http.StatusInternalServerError, "%s", err.Error())
}

// target finds the container of a request, or answers 404.
func (e *engineServer) target(w http.ResponseWriter, r *http.Request) *instance {
	id := r.PathValue("id")
	c := e.host.find(id)
	if c == nil {
		e.fail(w, http.StatusNotFound, "No such container: %s", id)
	}
	return c
}

func truthy(r *http.Request, name string) bool {
	value := r.URL.Query().Get(name)
	return value == "1" || strings.EqualFold(value, "true")
}

func (e *engineServer) listContainers(w http.ResponseWriter, r *http.Request) {
	filters, err := parseFilters(r.URL.Query().Get("filters"))
	if err != nil {
		e.fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	list := []container.Summary{}
	for i := len(e.host.containers) - 1; i >= 0; i-- { // The newest first.
		c := e.host.containers[i]
		_, byStatus := filters["status"]
		if (!c.running() && !truthy(r, "all") && !byStatus) || !c.matches(filters) {
			continue
		}
		summary := container.Summary{
			ID: c.id, Names: []string{"/" + c.name}, Image: c.config.Image, ImageID: c.image.id,
			Command: strings.Join(c.command(), " "), Created: c.created.Unix(), Labels: c.config.Labels,
			State: c.status, Status: string(c.status), Mounts: c.mountPoints(),
		}
		summary.HostConfig.NetworkMode = string(c.runtime.NetworkMode)
		list = append(list, summary)
	}
	e.answer(w, http.StatusOK, list)
}

func (e *engineServer) inspectContainer(w http.ResponseWriter, r *http.Request) {
	if c := e.target(w, r); c != nil {
		e.answer(w, http.StatusOK, c.inspect())
	}
}

func (e *engineServer) createContainer(w http.ResponseWriter, r *http.Request) {
	var request container.CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		e.fail(w, http.StatusBadRequest, "invalid JSON: %v", err)
		return
	}
	c, err := e.host.create(r.URL.Query().Get("name"), request)
	if err != nil {
		e.refused(w, err)
		return
	}
	e.host.note("create", c.name)
	e.answer(w, http.StatusCreated, container.CreateResponse{ID: c.id, Warnings: []string{}})
}

func (e *engineServer) startContainer(w http.ResponseWriter, r *http.Request) {
	c := e.target(w, r)
	if c == nil {
		return
	}
	if c.running() {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	e.host.note("start", c.name)
	if err := c.start(); err != nil {
		e.refused(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *engineServer) stopContainer(w http.ResponseWriter, r *http.Request) {
	c := e.target(w, r)
	if c == nil {
		return
	}
	if !c.running() {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	e.host.note("stop", c.name)
	c.stop()
	w.WriteHeader(http.StatusNoContent)
}

func (e *engineServer) killContainer(w http.ResponseWriter, r *http.Request) {
	c := e.target(w, r)
	if c == nil {
		return
	}
	if !c.running() {
		e.fail(w, http.StatusConflict, "cannot kill container: %s: container %s is not running", r.PathValue("id"), c.id)
		return
	}
	e.host.note("kill", c.name)
	switch r.URL.Query().Get("signal") {
	case "", "KILL", "SIGKILL", "9":
		c.exit(exitKilled)
	default:
		c.exit(128 + int(syscall.SIGTERM))
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *engineServer) removeContainer(w http.ResponseWriter, r *http.Request) {
	c := e.target(w, r)
	if c == nil {
		return
	}
	if c.running() && !truthy(r, "force") {
		e.fail(w, http.StatusConflict, "cannot remove container %q: container is running: "+
			"stop the container before removing or force remove", "/"+c.name)
		return
	}
	e.host.note("remove", c.name)
	c.remove()
	w.WriteHeader(http.StatusNoContent)
}

// waitContainer answers when the container has exited.
func (e *engineServer) waitContainer(w http.ResponseWriter, r *http.Request) {
	fleet := e.host.fleet
	fleet.mu.Lock()
	c := e.host.find(r.PathValue("id"))
	var started int64
	if c != nil {
		started = c.started.UnixNano()
	}
	fleet.mu.Unlock()
	if c == nil {
		e.fail(w, http.StatusNotFound, "No such container: %s", r.PathValue("id"))
		return
	}
	condition := container.WaitCondition(r.URL.Query().Get("condition"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	code := 0
	err := fleet.await(r.Context(), func() bool {
		code = c.exitCode
		switch condition {
		case container.WaitConditionRemoved:
			return e.host.find(c.id) == nil
		case container.WaitConditionNextExit:
			return c.status == container.StateExited && c.finished.UnixNano() > started && !c.finished.IsZero()
		default:
			return !c.running()
		}
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(container.WaitResponse{StatusCode: int64(code)}) // The client may be gone.
}
