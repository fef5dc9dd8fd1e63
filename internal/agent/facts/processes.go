package facts

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// displayServers are names of processes that draw a desktop or a login on the GPU.
var displayServers = []string{"Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "kwin_x11", "weston", "sway", "mutter"}

// processes goes once through /proc: for Ray, for display servers, and for who listens. Only names are
// read of all (reading a command line can wait for a process that hangs), and more of those few.
func (s Source) processes(facts *agent.Facts, odd *notes) {
	sockets := s.sockets(facts, odd)
	names, err := s.names("/proc")
	odd.add(err)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		program := s.text("/proc", name, "comm")
		switch {
		case program == "raylet" || program == "gcs_server":
			facts.Rays = append(facts.Rays, s.rayProcess(pid, program))
		case slices.Contains(displayServers, program) && !slices.Contains(facts.Display.Servers, program):
			facts.Display.Servers = append(facts.Display.Servers, program)
		}
		s.owners(sockets, pid, program)
	}
	facts.Listeners = sockets.list
}

// rayProcess reads what a process of Ray was started with.
func (s Source) rayProcess(pid int, kind string) agent.RayProcess {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	process := ParseRayCommand(kind, s.text(folder, "cmdline"))
	process.PID = pid
	process.HostIP = ParseEnviron(s.text(folder, "environ"), "VLLM_HOST_IP")
	process.Container = s.containerOf(pid)
	return process
}

// ParseRayCommand reads the command line of a raylet or GCS, as /proc has it: arguments that end with
// a zero byte. Ray writes its flags with underscores or hyphens, by version.
func ParseRayCommand(kind, cmdline string) agent.RayProcess {
	process := agent.RayProcess{Kind: kind}
	port := ""
	for argument := range strings.SplitSeq(cmdline, "\x00") {
		flag, value, found := strings.Cut(argument, "=")
		if !found || !strings.HasPrefix(flag, "--") {
			continue
		}
		switch strings.ReplaceAll(flag, "_", "-") {
		case "--node-ip-address":
			process.NodeAddress = value
		case "--gcs-address":
			process.Cluster = value
		case "--gcs-server-port":
			port = value
		}
	}
	if kind == "gcs_server" && process.Cluster == "" && process.NodeAddress != "" && port != "" {
		process.Cluster = process.NodeAddress + ":" + port
	}
	return process
}

// ParseEnviron gives a variable of /proc/PID/environ, or nothing.
func ParseEnviron(environ, name string) string {
	for entry := range strings.SplitSeq(environ, "\x00") {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// containerOf is the id of the container that a process runs in; empty outside of one.
func (s Source) containerOf(pid int) string {
	return ParseCgroup(s.text("/proc", strconv.Itoa(pid), "cgroup"))
}

// containerScope is how Docker and Podman name a container's control group, with the systemd driver
// (docker-ID.scope, libpod-ID.scope) and without (/docker/ID).
var containerScope = regexp.MustCompile(`(?:docker|libpod|cri-containerd|crio)[-/]([0-9a-f]{64})`)

// ParseCgroup gives the container's id of /proc/PID/cgroup, the innermost of several, or nothing.
func ParseCgroup(text string) string {
	found := containerScope.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}
