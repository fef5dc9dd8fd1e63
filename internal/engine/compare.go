package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SpecDifferences says in words what of a container's frame is not as wanted: mounts, namespaces,
// shared memory, devices, capabilities, GPUs and memlock. Image, command and environment are not
// its business. What want leaves to the engine is not compared, nor is what
// the container has on top, except for mounts that take the place of ours.
//
// names gives the names of the machine's containers by id: the engine stores "container:<id>" where
// a spec says "container:<name>".
func SpecDifferences(want, seen ContainerSpec, names map[string]string) []string {
	var found []string
	differ := func(format string, arguments ...any) { found = append(found, fmt.Sprintf(format, arguments...)) }

	for _, namespace := range []struct{ what, want, seen string }{
		{"network mode", want.NetworkMode, seen.NetworkMode},
		{"IPC mode", want.IPCMode, seen.IPCMode},
		{"PID mode", want.PIDMode, seen.PIDMode},
	} {
		if got := byName(namespace.seen, names); namespace.want != "" && byName(namespace.want, names) != got {
			differ("%s is %s, not %s", namespace.what, orNone(got), namespace.want)
		}
	}
	if size := want.SharedMemory; size != 0 && size != cmp.Or(seen.SharedMemory, defaultSharedMemory) {
		differ("shared memory is %d bytes, not %d", cmp.Or(seen.SharedMemory, defaultSharedMemory), size)
	}
	for _, m := range want.Mounts {
		at := slices.IndexFunc(seen.Mounts, func(other Mount) bool { return other.Target == m.Target })
		switch {
		case at < 0:
			differ("nothing is mounted at %s (want %s)", m.Target, m.describe())
		case seen.Mounts[at] != m:
			differ("at %s is mounted %s, not %s", m.Target, seen.Mounts[at].describe(), m.describe())
		}
	}
	for _, device := range missing(want.Devices, seen.Devices) {
		differ("device %s is not passed through", device)
	}
	for _, capability := range missing(want.CapAdd, seen.CapAdd) {
		differ("capability %s is not added", capability)
	}
	switch {
	case want.AllGPUs && !seen.AllGPUs:
		differ("the GPUs are not requested")
	case !want.AllGPUs && seen.AllGPUs:
		differ("the GPUs are requested")
	}
	if want.UnlimitedMemlock && !seen.UnlimitedMemlock {
		differ("locked memory is limited")
	}
	return found
}

// byName rewrites "container:<id>" to "container:<name>" for a known id.
func byName(mode string, names map[string]string) string {
	id, ok := strings.CutPrefix(mode, "container:")
	if !ok {
		return mode
	}
	if name := names[id]; name != "" {
		return "container:" + strings.TrimPrefix(name, "/")
	}
	return mode
}

func (m Mount) describe() string {
	kind, access := "folder ", ""
	if m.Volume {
		kind = "volume "
	}
	if m.ReadOnly {
		access = " (read-only)"
	}
	return kind + m.Source + access
}

func missing(want, seen []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(value string) bool { return slices.Contains(seen, value) })
}

func orNone(text string) string { return cmp.Or(text, "not set") }
