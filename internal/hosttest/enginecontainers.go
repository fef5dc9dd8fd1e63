package hosttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

// refusal is an error answer of the engine.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, format string, values ...any) error {
	return &refusal{status: status, message: fmt.Sprintf(format, values...)}
}

// create makes a container. The lock is held.
func (h *Host) create(name string, request container.CreateRequest) (*instance, error) {
	if request.Config == nil {
		return nil, refuse(http.StatusBadRequest, "config cannot be empty in order to create a container")
	}
	config, runtime := *request.Config, request.HostConfig
	if runtime == nil {
		runtime = &container.HostConfig{}
	}
	stored := h.lookUp(config.Image)
	if stored == nil {
		return nil, refuse(http.StatusNotFound, "No such image: %s", config.Image)
	}
	id := newID()
	if name == "" {
		h.fleet.serial++
		name = fmt.Sprintf("nameless_turing%d", h.fleet.serial)
	}
	if other := h.find(name); other != nil && other.name == name {
		return nil, refuse(http.StatusConflict, "Conflict. The container name %q is already in use by container %q. "+
			"You have to remove (or rename) that container to be able to reuse that name.", "/"+name, other.id)
	}
	if len(config.Entrypoint) == 0 && config.Entrypoint == nil {
		config.Entrypoint = stored.entrypoint
	}
	config.Env = stored.completed(config.Env)
	if err := h.prepare(runtime); err != nil {
		return nil, err
	}
	c := &instance{
		host: h, id: id, name: name, image: stored, config: &config, runtime: runtime,
		status: container.StateCreated, created: time.Now(),
	}
	h.containers = append(h.containers, c)
	return c, nil
}

// prepare checks mounts and rewrites the names of joined containers to ids, as the engine does.
func (h *Host) prepare(runtime *container.HostConfig) error {
	for _, m := range runtime.Mounts {
		switch m.Type {
		case mount.TypeBind:
			if _, err := os.Stat(h.Path(m.Source)); err != nil && !strings.HasPrefix(m.Source, "/dev/") {
				return refuse(http.StatusBadRequest,
					"invalid mount config for type %q: bind source path does not exist: %s", "bind", m.Source)
			}
		case mount.TypeVolume:
			var labels map[string]string
			if m.VolumeOptions != nil {
				labels = m.VolumeOptions.Labels
			}
			h.ensureVolume(m.Source, labels)
		default:
		}
	}
	for _, bind := range runtime.Binds {
		source, _, _ := strings.Cut(bind, ":")
		if !strings.HasPrefix(source, "/") {
			h.ensureVolume(source, nil)
		} else if err := os.MkdirAll(h.Path(source), 0o750); err != nil {
			return refuse(http.StatusInternalServerError, "%v", err)
		}
	}
	pid, err := h.rewrite(string(runtime.PidMode))
	if err != nil {
		return err
	}
	ipc, err := h.rewrite(string(runtime.IpcMode))
	if err != nil {
		return err
	}
	if donor := h.find(strings.TrimPrefix(ipc, "container:")); donor != nil && !donor.runtime.IpcMode.IsShareable() {
		return refuse(http.StatusConflict, "cannot join IPC of container %s: non-shareable IPC "+
			"(hint: use IpcMode:shareable for the donor container)", donor.id)
	}
	network, err := h.rewrite(string(runtime.NetworkMode))
	if err != nil {
		return err
	}
	runtime.PidMode, runtime.IpcMode = container.PidMode(pid), container.IpcMode(ipc)
	runtime.NetworkMode = container.NetworkMode(network)
	if ipc == "" {
		runtime.IpcMode = container.IPCModePrivate
	}
	if network == "" {
		runtime.NetworkMode = "bridge"
	}
	if runtime.ShmSize == 0 {
		runtime.ShmSize = 64 << 20
	}
	if runtime.RestartPolicy.Name == "" {
		runtime.RestartPolicy.Name = container.RestartPolicyDisabled
	}
	return nil
}

func (h *Host) rewrite(mode string) (string, error) {
	name, ok := strings.CutPrefix(mode, "container:")
	if !ok {
		return mode, nil
	}
	other := h.find(name)
	if other == nil {
		return "", refuse(http.StatusNotFound, "No such container: %s", name)
	}
	return "container:" + other.id, nil
}

// inspect is the engine's description of a container.
func (c *instance) inspect() container.InspectResponse {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return "0001-01-01T00:00:00Z"
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	state := &container.State{
		Status: c.status, Running: c.running(), OOMKilled: c.oomKilled, ExitCode: c.exitCode,
		StartedAt: stamp(c.started), FinishedAt: stamp(c.finished),
	}
	if c.running() {
		state.Pid = 4242
	}
	response := container.InspectResponse{
		ID: c.id, Created: stamp(c.created), Name: "/" + c.name, Image: c.image.id, State: state,
		Config: c.config, HostConfig: c.runtime, Driver: "overlay2", Platform: "linux",
		NetworkSettings: &container.NetworkSettings{}, Mounts: c.mountPoints(),
	}
	if command := c.command(); len(command) > 0 {
		response.Path, response.Args = command[0], command[1:]
	}
	return response
}

func (c *instance) mountPoints() []container.MountPoint {
	points := []container.MountPoint{}
	for _, m := range c.runtime.Mounts {
		point := container.MountPoint{
			Type: m.Type, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly, Propagation: mount.PropagationRPrivate,
		}
		if m.Type == mount.TypeVolume {
			point.Name, point.Driver, point.Propagation = m.Source, "local", ""
			point.Source = "/var/lib/docker/volumes/" + m.Source + "/_data"
		}
		points = append(points, point)
	}
	for _, bind := range c.runtime.Binds {
		parts := strings.Split(bind, ":")
		if len(parts) < 2 {
			continue
		}
		point := container.MountPoint{Type: mount.TypeBind, Source: parts[0], Destination: parts[1], RW: true}
		if len(parts) > 2 {
			point.Mode = parts[2]
			point.RW = !slices.Contains(strings.Split(parts[2], ","), "ro")
		}
		if !strings.HasPrefix(parts[0], "/") {
			point.Type, point.Name, point.Driver = mount.TypeVolume, parts[0], "local"
			point.Source = "/var/lib/docker/volumes/" + parts[0] + "/_data"
		}
		points = append(points, point)
	}
	return points
}

// matches applies the filters of a list: values of one key are alternatives, but all labels must be there.
func (c *instance) matches(filters map[string]map[string]bool) bool {
	for key, values := range filters {
		ok := key == "label"
		for value := range values {
			switch key {
			case "label":
				name, wanted, exact := strings.Cut(value, "=")
				have, there := c.config.Labels[name]
				ok = ok && there && (!exact || have == wanted)
			case "name":
				pattern, err := regexp.Compile(value)
				ok = ok || (err == nil && (pattern.MatchString("/"+c.name) || pattern.MatchString(c.name)))
			case "id":
				ok = ok || strings.HasPrefix(c.id, value)
			case "status":
				ok = ok || string(c.status) == value
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

func parseFilters(text string) (map[string]map[string]bool, error) {
	filters := map[string]map[string]bool{}
	if text == "" {
		return filters, nil
	}
	if err := json.Unmarshal([]byte(text), &filters); err != nil {
		return nil, fmt.Errorf("invalid filter: %w", err)
	}
	return filters, nil
}
