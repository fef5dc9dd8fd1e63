package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

const (
	// defaultSharedMemory is the engine's size of /dev/shm: 64 MiB.
	defaultSharedMemory = 64 << 20
	// allGPUs is the Count of a device request for every device (docker run --gpus all).
	allGPUs        = -1
	gpuCapability  = "gpu"
	devicePower    = "rwm" // read, write, mknod: what docker run --device gives
	memlock        = "memlock"
	unlimited      = -1
	capabilityName = "CAP_"
)

// request is a spec as the engine wants it. What a spec does not say is left to the engine, except
// for a restart policy (never: a lone rank that restarts is worse than a dead one) and an init
// process (no: the command's exit code and signals are our evidence).
func request(spec ContainerSpec) (*container.Config, *container.HostConfig) {
	noInit := false
	config := &container.Config{
		Image:      spec.Image,
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Command,
		Env:        assignments(spec.Env),
		Labels:     spec.Labels,
	}
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(spec.NetworkMode),
		IpcMode:       container.IpcMode(spec.IPCMode),
		PidMode:       container.PidMode(spec.PIDMode),
		ShmSize:       spec.SharedMemory,
		CapAdd:        spec.CapAdd,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Init:          &noInit,
	}
	for _, m := range spec.Mounts {
		asked := mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
		if m.Volume {
			// The engine makes the volume with these labels if there is none, so that it can be found.
			asked.Type = mount.TypeVolume
			asked.VolumeOptions = &mount.VolumeOptions{Labels: maps.Clone(spec.Labels)}
		}
		host.Mounts = append(host.Mounts, asked)
	}
	for _, path := range spec.Devices {
		host.Devices = append(host.Devices, container.DeviceMapping{PathOnHost: path, PathInContainer: path, CgroupPermissions: devicePower})
	}
	if spec.AllGPUs {
		host.DeviceRequests = []container.DeviceRequest{{Count: allGPUs, Capabilities: [][]string{{gpuCapability}}}}
	}
	if spec.UnlimitedMemlock {
		host.Ulimits = []*container.Ulimit{{Name: memlock, Soft: unlimited, Hard: unlimited}}
	}
	return config, host
}

// seenContainer is an inspected container in our terms.
func seenContainer(seen container.InspectResponse) Container {
	c := Container{ID: seen.ID, ImageID: seen.Image}
	c.Spec.Name = strings.TrimPrefix(seen.Name, "/")
	if state := seen.State; state != nil {
		c.Status, c.ExitCode, c.OOMKilled = string(state.Status), state.ExitCode, state.OOMKilled
		// The engine says year 1 for never, which is Go's zero time.
		if started, err := time.Parse(time.RFC3339Nano, state.StartedAt); err == nil {
			c.StartedAt = started
		}
	}
	if config := seen.Config; config != nil {
		c.Spec.Image = config.Image
		c.Spec.Entrypoint, c.Spec.Command = config.Entrypoint, config.Cmd
		c.Spec.Env, c.Spec.Labels = environment(config.Env), config.Labels
	}
	if host := seen.HostConfig; host != nil {
		seenHost(&c.Spec, host)
	}
	return c
}

func seenHost(spec *ContainerSpec, host *container.HostConfig) {
	spec.NetworkMode, spec.IPCMode, spec.PIDMode = string(host.NetworkMode), string(host.IpcMode), string(host.PidMode)
	if host.ShmSize != defaultSharedMemory {
		spec.SharedMemory = host.ShmSize
	}
	for _, m := range host.Mounts {
		if m.Type == mount.TypeBind || m.Type == mount.TypeVolume {
			spec.Mounts = append(spec.Mounts, Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly, Volume: m.Type == mount.TypeVolume})
		}
	}
	for _, bind := range host.Binds {
		if m, ok := bound(bind); ok {
			spec.Mounts = append(spec.Mounts, m)
		}
	}
	for _, device := range host.Devices {
		spec.Devices = append(spec.Devices, device.PathOnHost)
	}
	for _, capability := range host.CapAdd {
		spec.CapAdd = append(spec.CapAdd, strings.TrimPrefix(capability, capabilityName))
	}
	for _, asked := range host.DeviceRequests {
		if asked.Count == allGPUs && slices.ContainsFunc(asked.Capabilities, func(all []string) bool { return slices.Contains(all, gpuCapability) }) {
			spec.AllGPUs = true
		}
	}
	for _, limit := range host.Ulimits {
		if limit != nil && limit.Name == memlock && limit.Soft == unlimited && limit.Hard == unlimited {
			spec.UnlimitedMemlock = true
		}
	}
}

// bound reads a mount as `docker run -v` writes it, "source:target[:options]"; an anonymous volume
// (no source) is none.
func bound(bind string) (Mount, bool) {
	parts := strings.SplitN(bind, ":", 3)
	if len(parts) < 2 {
		return Mount{}, false
	}
	m := Mount{Source: parts[0], Target: parts[1], Volume: !strings.HasPrefix(parts[0], "/")}
	if len(parts) == 3 {
		m.ReadOnly = slices.Contains(strings.Split(parts[2], ","), "ro")
	}
	return m, true
}

// assignments are variables as the engine takes them, sorted for a stable request.
func assignments(env map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, name+"="+env[name])
	}
	return lines
}

// environment reads "NAME=value" lines; the last of several counts, as for execve.
func environment(lines []string) map[string]string {
	env := make(map[string]string, len(lines))
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	return env
}
