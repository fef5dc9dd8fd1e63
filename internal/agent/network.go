package agent

import "net/netip"

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
	// MAC is the hardware address, "4c:bb:47:2c:1a:3b".
	MAC string `json:"mac,omitempty"`
	// Kind is the kernel's DEVTYPE ("wlan", "wireguard", "bridge", "vlan", "bond"), "tun" for TUN and
	// TAP devices, or empty: a plain Ethernet device, or one whose driver does not say.
	Kind string `json:"kind,omitempty"`
}

// RDMADevice is an entry of /sys/class/infiniband.
type RDMADevice struct {
	Name string `json:"name"`
	// Interface is the netdev of the device's first port.
	Interface string `json:"interface"`
	Active    bool   `json:"active"`
	// GIDs are the RoCE v2 entries whose GID embeds an IPv4 address.
	GIDs []GID `json:"gids"`
	// LinkLayer is "Ethernet" for RoCE, or "InfiniBand".
	LinkLayer string `json:"link_layer,omitempty"`
	// Firmware is fw_ver, "28.45.4028".
	Firmware string `json:"firmware,omitempty"`
	// RateGbps is the port's rate in Gb/s; 0 if it is not told.
	RateGbps int     `json:"rate_gbps,omitempty"`
	PCI      PCILink `json:"pci"`
}

// GID is an entry of a RoCE device's GID table.
type GID struct {
	// Index is the value for NCCL_IB_GID_INDEX. It moves; never store it.
	Index   int        `json:"index"`
	Address netip.Addr `json:"address"`
}

// PCILink is how a device is wired. Zero values are unknown.
type PCILink struct {
	// Address is the PCI function, "0002:01:00.0".
	Address string `json:"address,omitempty"`
	// Width and MaxWidth are lanes. A half of a Spark's port has four of its device's many.
	Width    int `json:"width,omitempty"`
	MaxWidth int `json:"max_width,omitempty"`
	// Speed and MaxSpeed are in GT/s for each lane: 32 is PCIe 5.
	Speed    float64 `json:"speed,omitempty"`
	MaxSpeed float64 `json:"max_speed,omitempty"`
}

// Routing is the kernel's IPv4 routing: what decides by which interface and with which source
// address a packet leaves.
type Routing struct {
	// Rules in the order they are tried.
	Rules []Rule `json:"rules,omitempty"`
	// Routes of the tables that the rules name, without broadcast and multicast.
	Routes []Route `json:"routes,omitempty"`
}

// The actions of a rule and types of a route that [Rule] and [Route] name by word.
const (
	RouteUnicast     = "unicast"
	RouteLocal       = "local"
	RouteBlackhole   = "blackhole"
	RouteUnreachable = "unreachable"
	RouteProhibit    = "prohibit"
	RouteThrow       = "throw"
	RuleLookup       = "lookup"
	RuleNop          = "nop"
)

// Rule says for which packets a table is asked.
type Rule struct {
	Priority int `json:"priority"`
	// Not inverts the selectors.
	Not bool `json:"not,omitempty"`
	// From and To are the zero Prefix for any.
	From netip.Prefix `json:"from,omitzero"`
	To   netip.Prefix `json:"to,omitzero"`
	// In and Out are names of interfaces.
	In  string `json:"in,omitempty"`
	Out string `json:"out,omitempty"`
	// Mark and Mask select by a packet's mark; Mask 0 selects nothing by it.
	Mark uint32 `json:"mark,omitempty"`
	Mask uint32 `json:"mask,omitempty"`
	// Action is RuleLookup, RuleNop, RouteBlackhole, RouteUnreachable or RouteProhibit.
	Action string `json:"action"`
	Table  int    `json:"table,omitempty"`
	// LongerThan drops an answer whose prefix has that many bits or fewer; -1 drops none.
	LongerThan int `json:"longer_than"`
	// Other names a selector or action that is not told here ("uidrange", "dport", "goto"): whether
	// the rule holds for a packet is then unknown.
	Other string `json:"other,omitempty"`
}

// Route is an entry of a table; one with several next hops is several.
type Route struct {
	Table       int          `json:"table"`
	Type        string       `json:"type"`
	Destination netip.Prefix `json:"destination"`
	Interface   string       `json:"interface,omitempty"`
	Gateway     netip.Addr   `json:"gateway,omitzero"`
	// Source is the preferred source address; without it the kernel takes one of the interface.
	Source netip.Addr `json:"source,omitzero"`
	// Metric decides among routes of one prefix, the lowest first.
	Metric int `json:"metric,omitempty"`
	// MTU of the route, 0 for the interface's.
	MTU int `json:"mtu,omitempty"`
	// TOS is 0 for all but routes of one type of service.
	TOS int `json:"tos,omitempty"`
	// Dead says that its next hop is down. LinkDown alone still attracts packets, by default.
	Dead bool `json:"dead,omitempty"`
}

// Firewall is what can be read of the packet filter. Without root that is little, and what is
// unknown is empty.
type Firewall struct {
	// UFW is "enabled" or "disabled" by its configuration; empty without one.
	UFW string `json:"ufw,omitempty"`
	// Input is ufw's policy for incoming packets, "DROP". Its rules are root's alone.
	Input string `json:"input,omitempty"`
	// Forward is the policy of the chain FORWARD, "DROP"; told to root only.
	Forward string `json:"forward,omitempty"`
}
