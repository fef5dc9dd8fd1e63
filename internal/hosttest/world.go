package hosttest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// The names of the hosts' devices, as on a DGX Spark.
const (
	ManagementInterface = "enP7s7"
	FabricInterface     = "enp1s0f0np0"
	RDMADevice          = "rocep1s0f0"
)

// Host is one simulated DGX Spark. Its methods change the world behind the back of the code under
// test; none of them shows in the journal.
type Host struct {
	fleet  *Fleet
	index  int
	name   string
	root   string
	ssh    *sshServer
	engine *engineServer
	// hanging is closed when the host goes on; nil while it does not hang.
	hanging atomic.Pointer[chan struct{}]

	// The fleet's lock guards what follows.
	management netip.Addr
	fabric     netip.Addr // invalid: the fabric interface has no address
	gidIndex   int
	mtu        int  // of the fabric interface
	astray     bool // traffic to the fabric leaves by the management interface
	gpus       int
	gpuError   string
	memory     [3]int64 // total, available, free in bytes
	freeBytes  int64    // of the disk
	taken      map[int]struct{}
	off        bool
	exchanged  int // how often another machine took this one's place
	fault      faultState
	images     []*storedImage
	containers []*instance
	execs      map[string]*execution
	volumes    map[string]storedVolume
	baseline   map[string]fileMark
	answers    []shellAnswer
	questions  []string // that agents were asked
}

// The address plan: loopback addresses, which need no setup on Linux.
func managementAddress(index int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + index)}) //nolint:gosec // NewFleet bounds the index.
}

func fabricAddress(index int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, 100, byte(11 + index)}) //nolint:gosec // NewFleet bounds the index.
}

func newHost(f *Fleet, index int) (*Host, error) {
	const gib = 1 << 30
	h := &Host{
		fleet: f, index: index, name: fmt.Sprintf("aurora-%d", index+1),
		management: managementAddress(index), fabric: fabricAddress(index),
		gidIndex: 3, mtu: 9000, gpus: 1, memory: [3]int64{121 * gib, 118 * gib, 110 * gib}, freeBytes: 2e12,
		taken: map[int]struct{}{}, execs: map[string]*execution{}, volumes: map[string]storedVolume{},
	}
	h.root = filepath.Join(f.dir, h.name)
	for _, folder := range []string{h.Home(), "/models", "/tmp"} {
		if err := os.MkdirAll(h.Path(folder), 0o750); err != nil {
			return nil, err
		}
	}
	if err := h.publish(); err != nil {
		return nil, err
	}
	h.images = []*storedImage{newImage(DefaultImage)}
	h.baseline = h.scan()
	h.engine = newEngineServer(h)
	server, err := newSSHServer(h)
	h.ssh = server
	return h, err
}

// Name is the host's own name, "aurora-1".
func (h *Host) Name() string { return h.name }

// Address is the management address, by which the provider reaches the host.
func (h *Host) Address() string { return managementAddress(h.index).String() }

// FabricAddress is the present address of the fabric interface, empty if it has none.
func (h *Host) FabricAddress() string {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	if !h.fabric.IsValid() {
		return ""
	}
	return h.fabric.String()
}

// Home is the login user's home on the host.
func (h *Host) Home() string { return "/home/" + User }

// Root is the folder of the test's machine that stands for "/" of the host.
func (h *Host) Root() string { return h.root }

// Path translates a path on the host ("/models/x", "~/x") to the test's machine.
func (h *Host) Path(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = h.Home() + "/" + rest
	}
	return filepath.Join(h.root, filepath.Clean("/"+path))
}

// SetFabricAddress moves the fabric interface to another address ("127.0.100.77"; anything below
// 127/8 can be listened on); empty takes the address away. What runs keeps its old address until
// Ray notices, see [Timing].AddressLoss; nobody reaches it by that any more.
func (h *Host) SetFabricAddress(address string) {
	h.fleet.t.Helper()
	var parsed netip.Addr
	if address != "" {
		var err error
		if parsed, err = netip.ParseAddr(address); err != nil {
			h.fleet.t.Fatalf("hosttest: SetFabricAddress: %v", err)
		}
	}
	h.reshape(func() { h.fabric = parsed })
}

// SetGPUs changes how many GPUs nvidia-smi lists.
func (h *Host) SetGPUs(count int) { h.change(func() { h.gpus = count }) }

// SetGPUError makes nvidia-smi fail with a text; empty heals it.
func (h *Host) SetGPUError(text string) { h.change(func() { h.gpuError = text }) }

// SetGIDIndex moves the RoCE v2 entry of the fabric address in the GID table.
func (h *Host) SetGIDIndex(index int) { h.reshape(func() { h.gidIndex = index }) }

// SetMemory sets /proc/meminfo's MemTotal, MemAvailable and MemFree, in bytes.
func (h *Host) SetMemory(total, available, free int64) {
	h.reshape(func() { h.memory = [3]int64{total, available, free} })
}

// TakePort makes something else listen on a TCP port of the host.
func (h *Host) TakePort(port int) { h.change(func() { h.taken[port] = struct{}{} }) }

// FreePort undoes [Host.TakePort].
func (h *Host) FreePort(port int) { h.change(func() { delete(h.taken, port) }) }

// change alters the world under the lock and lets it settle.
func (h *Host) change(alter func()) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.fleet.settle()
	alter()
	h.fleet.settle()
	h.fleet.broadcast()
}

// holds says whether an interface of the host has the address. The lock is held.
func (h *Host) holds(address netip.Addr) bool {
	return address == h.management || (h.fabric.IsValid() && address == h.fabric)
}

// listening returns the ports on which something listens. The lock is held.
func (h *Host) listening() []int {
	ports := []int{22}
	for port := range h.taken {
		ports = append(ports, port)
	}
	for _, c := range h.containers {
		if c.program != nil {
			ports = append(ports, c.program.ports()...)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// portTaken says whether a port is in use by something else than c. The lock is held.
func (h *Host) portTaken(port int, c *instance) bool {
	if _, ok := h.taken[port]; ok {
		return true
	}
	return slices.ContainsFunc(h.containers, func(other *instance) bool {
		return other != c && other.program != nil && slices.Contains(other.program.ports(), port)
	})
}
