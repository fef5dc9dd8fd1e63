package hosttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/volume"
)

// storedVolume is a named volume.
type storedVolume struct {
	labels  map[string]string
	created time.Time
}

// Volumes are the names of the host's volumes, sorted.
func (h *Host) Volumes() []string {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return slices.Sorted(maps.Keys(h.volumes))
}

// ensureVolume makes a volume on first use. The lock is held.
func (h *Host) ensureVolume(name string, labels map[string]string) {
	if _, ok := h.volumes[name]; !ok {
		h.volumes[name] = storedVolume{labels: labels, created: time.Now()}
	}
}

func (h *Host) describeVolume(name string) volume.Volume {
	stored := h.volumes[name]
	return volume.Volume{
		Name: name, Driver: "local", Scope: "local", Labels: stored.labels,
		CreatedAt: stored.created.UTC().Format(time.RFC3339), Mountpoint: "/var/lib/docker/volumes/" + name + "/_data",
	}
}

func (e *engineServer) listVolumes(w http.ResponseWriter, _ *http.Request) {
	list := volume.ListResponse{}
	for _, name := range slices.Sorted(maps.Keys(e.host.volumes)) {
		list.Volumes = append(list.Volumes, e.host.describeVolume(name))
	}
	e.answer(w, http.StatusOK, list)
}

func (e *engineServer) createVolume(w http.ResponseWriter, r *http.Request) {
	var request volume.CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Name == "" {
		e.fail(w, http.StatusBadRequest, "invalid volume request")
		return
	}
	if _, ok := e.host.volumes[request.Name]; !ok {
		e.host.note("create volume", request.Name)
		e.host.volumes[request.Name] = storedVolume{labels: request.Labels, created: time.Now()}
	}
	e.answer(w, http.StatusCreated, e.host.describeVolume(request.Name))
}

func (e *engineServer) inspectVolume(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := e.host.volumes[name]; !ok {
		e.fail(w, http.StatusNotFound, "get %s: no such volume", name)
		return
	}
	e.answer(w, http.StatusOK, e.host.describeVolume(name))
}

func (e *engineServer) removeVolume(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := e.host.volumes[name]; !ok {
		e.fail(w, http.StatusNotFound, "get %s: no such volume", name)
		return
	}
	var users []string
	for _, c := range e.host.containers {
		for _, point := range c.mountPoints() {
			if point.Name == name {
				users = append(users, c.id)
			}
		}
	}
	if len(users) > 0 {
		e.fail(w, http.StatusConflict, "remove %s: volume is in use - [%s]", name, strings.Join(users, ", "))
		return
	}
	e.host.note("remove volume", name)
	delete(e.host.volumes, name)
	w.WriteHeader(http.StatusNoContent)
}
