package agent

import (
	"net/netip"
	"time"
)

// Facts is what one look at a node finds. It is gathered by one call and shared by all that ask.
type Facts struct {
	// Hostname is the node's own name.
	Hostname string `json:"hostname"`
	// Architecture is Go's name of it: "arm64", "amd64".
	Architecture string `json:"architecture"`
	Kernel       string `json:"kernel"`
	// OS is PRETTY_NAME of /etc/os-release.
	OS   string    `json:"os"`
	Time time.Time `json:"time"`

	User       User        `json:"user"`
	Interfaces []Interface `json:"interfaces"`
	// DefaultInterface carries the IPv4 default route; empty if there is none.
	DefaultInterface string       `json:"default_interface"`
	RDMA             []RDMADevice `json:"rdma"`
	GPUs             []GPU        `json:"gpus"`
	// GPUError says why nvidia-smi gave no list; empty if it did (also for an empty list).
	GPUError string `json:"gpu_error,omitempty"`
	Driver   string `json:"driver"`
	// Memory of the host, which is GB10's GPU memory too.
	Memory Memory `json:"memory"`
	// Listening are the TCP ports on which something listens on this node, any address, sorted.
	Listening []int `json:"listening"`
}

// User is the account that we log in as.
type User struct {
	Name   string   `json:"name"`
	UID    int      `json:"uid"`
	GID    int      `json:"gid"`
	Home   string   `json:"home"`
	Groups []string `json:"groups"`
}

// Interface is a network device.
type Interface struct {
	Name string `json:"name"`
	// Up says that the device is set up and has a carrier: a cable that is out is not up.
	Up  bool `json:"up"`
	MTU int  `json:"mtu"`
	// SpeedMbps is the link speed in Mb/s; 0 if the device does not tell.
	SpeedMbps int `json:"speed_mbps"`
	// PhysicalPort is phys_port_name, such as "p0"; the two halves of a port share it.
	PhysicalPort string         `json:"physical_port,omitempty"`
	Addresses    []netip.Prefix `json:"addresses"`
}

// RDMADevice is an entry of /sys/class/infiniband.
type RDMADevice struct {
	Name string `json:"name"`
	// Interface is the netdev of the device's first port.
	Interface string `json:"interface"`
	Active    bool   `json:"active"`
	// GIDs are the RoCE v2 entries whose GID embeds an IPv4 address.
	GIDs []GID `json:"gids"`
}

// GID is an entry of a RoCE device's GID table.
type GID struct {
	// Index is the value for NCCL_IB_GID_INDEX. It moves; never store it.
	Index   int        `json:"index"`
	Address netip.Addr `json:"address"`
}

// GPU is a device that nvidia-smi lists.
type GPU struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
}

// Memory in bytes, from /proc/meminfo. nvidia-smi answers [N/A] on GB10.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	// Free decides whether vLLM starts: CUDA counts page cache as used.
	Free int64 `json:"free"`
}
