package agent

import (
	"net/netip"
	"time"
)

// Facts is what one look at a node finds. It is gathered by one call and shared by all that ask.
// What cannot be read is left empty and named in Unread: nothing is guessed, and an odd answer
// never costs the rest.
type Facts struct {
	// Hostname is the node's own name.
	Hostname string `json:"hostname"`
	// HostnameAddresses is what /etc/hosts says the hostname is; Ubuntu writes 127.0.1.1.
	HostnameAddresses []netip.Addr `json:"hostname_addresses,omitempty"`
	// MachineID is /etc/machine-id. Some DGX Sparks were shipped with equal ones: it is no identity.
	MachineID string `json:"machine_id,omitempty"`
	// Architecture is Go's name of it: "arm64", "amd64".
	Architecture string `json:"architecture"`
	Kernel       string `json:"kernel"`
	// OS is PRETTY_NAME of /etc/os-release.
	OS   string    `json:"os"`
	Time time.Time `json:"time"`
	// ClockOffset is how far the node's clock is ahead of the client's (negative: behind) at least: 0
	// while Time lies within the call, as the client saw it.
	ClockOffset time.Duration `json:"-"`

	User       User        `json:"user"`
	Interfaces []Interface `json:"interfaces"`
	// DefaultInterface carries the IPv4 default route; empty if there is none.
	DefaultInterface string `json:"default_interface"`
	// Routing is empty if the kernel did not tell.
	Routing Routing `json:"routing"`
	// Sysctls are net.ipv4.ip_forward and rp_filter, arp_ignore and arp_announce of "all" and of each
	// interface with an address, by the names that sysctl(8) has for them.
	Sysctls  map[string]int `json:"sysctls,omitempty"`
	Firewall Firewall       `json:"firewall"`
	RDMA     []RDMADevice   `json:"rdma"`
	// Verbs are the names in /dev/infiniband, such as "uverbs0"; a container needs them for RDMA.
	Verbs []string `json:"verbs,omitempty"`
	GPUs  []GPU    `json:"gpus"`
	// GPUError says why nvidia-smi gave no list; empty if it did (also for an empty list).
	GPUError string `json:"gpu_error,omitempty"`
	// GPUProcesses hold memory of a GPU.
	GPUProcesses []GPUProcess `json:"gpu_processes,omitempty"`
	Driver       string       `json:"driver"`
	// CUDA is the newest version that the driver serves, "13.0".
	CUDA string `json:"cuda,omitempty"`
	// Toolkit is the NVIDIA container toolkit as far as files tell.
	Toolkit Toolkit `json:"toolkit"`
	// DockerRoot is the engine's data folder by /etc/docker/daemon.json, or Docker's default.
	DockerRoot string `json:"docker_root,omitempty"`
	// Memory of the host, which is GB10's GPU memory too.
	Memory Memory `json:"memory"`
	// Mounts are the file systems that files can lie on, in the order they were mounted.
	Mounts []Mount `json:"mounts,omitempty"`
	// Display is what draws on the GPU.
	Display Display `json:"display"`
	// DRMOverride says that /etc/modprobe.d/zz-nvidia-drm-override.conf exists.
	DRMOverride bool `json:"drm_override,omitempty"`
	// Rays are the processes of Ray that keep a cluster together, in containers or not.
	Rays []RayProcess `json:"rays,omitempty"`
	// Listening are the TCP ports on which something listens on this node, any address, sorted.
	Listening []int `json:"listening"`
	// Listeners are the sockets behind Listening.
	Listeners []Listener `json:"listeners,omitempty"`
	// Unread says in words what could not be read.
	Unread []string `json:"unread,omitempty"`
}

// User is the account that we log in as.
type User struct {
	Name   string   `json:"name"`
	UID    int      `json:"uid"`
	GID    int      `json:"gid"`
	Home   string   `json:"home"`
	Groups []string `json:"groups"`
	// Sudo is "yes" if sudo works without a password, "no", or empty where it was not asked: sudo
	// reports each refusal to the administrator, so it is asked for members of its groups only.
	Sudo string `json:"sudo,omitempty"`
}

// GPU is a device that nvidia-smi lists.
type GPU struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	// MemoryMiB is the GPU's own memory; 0 where nvidia-smi answers N/A, as on GB10, which shares the
	// host's.
	MemoryMiB int64 `json:"memory_mib,omitempty"`
}

// GPUProcess is a process that holds memory of a GPU.
type GPUProcess struct {
	// GPU is its index.
	GPU int `json:"gpu"`
	PID int `json:"pid"`
	// Type is nvidia-smi's: "C" computes, "G" draws, "C+G" does both.
	Type string `json:"type"`
	Name string `json:"name"`
	// MemoryMiB is 0 if nvidia-smi does not tell.
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	// Container is the id of the container that it runs in; empty outside of one.
	Container string `json:"container,omitempty"`
}

// Memory in bytes, from /proc/meminfo. nvidia-smi answers [N/A] on GB10.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	// Free decides whether vLLM starts: CUDA counts page cache as used.
	Free int64 `json:"free"`
	// CMATotal and CMAFree are the contiguous memory that the kernel keeps for devices.
	CMATotal int64 `json:"cma_total,omitempty"`
	CMAFree  int64 `json:"cma_free,omitempty"`
}

// Mount is a mounted file system.
type Mount struct {
	Point string `json:"point"`
	// Type is the kernel's name of the file system, "ext4".
	Type     string `json:"type"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Free is what the user may still write, in bytes; -1 if it was not asked (file systems of the
	// network, where asking may hang) or did not say.
	Free int64 `json:"free"`
}

// Toolkit is what the files of the NVIDIA container toolkit tell.
type Toolkit struct {
	// Programs are those of the toolkit that are installed, by path.
	Programs []string `json:"programs,omitempty"`
	// Runtime says that /etc/docker/daemon.json names the runtime "nvidia".
	Runtime bool `json:"runtime,omitempty"`
	// CDI are the device specifications in /etc/cdi and /var/run/cdi.
	CDI []string `json:"cdi,omitempty"`
}

// Display is what draws on the GPU.
type Display struct {
	// Target is systemd's default target, "graphical.target".
	Target string `json:"target,omitempty"`
	// Servers are the names of running display servers and greeters, "Xorg", "gnome-shell".
	Servers []string `json:"servers,omitempty"`
}

// RayProcess is a raylet or a GCS.
type RayProcess struct {
	PID int `json:"pid"`
	// Kind is "raylet" or "gcs_server".
	Kind string `json:"kind"`
	// NodeAddress is its --node-ip-address, Cluster the "A:P" of the GCS that it belongs to; empty if
	// its command line does not say.
	NodeAddress string `json:"node_address,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	// HostIP is VLLM_HOST_IP of its environment; empty if there is none or it may not be read.
	HostIP string `json:"host_ip,omitempty"`
	// Container is the id of the container that it runs in; empty outside of one.
	Container string `json:"container,omitempty"`
}

// Listener is a TCP socket that takes connections.
type Listener struct {
	Address netip.Addr `json:"address"`
	Port    int        `json:"port"`
	// UID owns it. PID and Program are 0 and empty where the process may not be looked at.
	UID     int    `json:"uid"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
}
