package hosttest

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"time"
)

// rayNode is a `ray start` in a container: a raylet, and on the head a GCS too.
type rayNode struct {
	instance *instance
	head     *rayNode // itself on the head; nil on a worker that has not joined
	id       []byte
	address  string
	gpus     int
	port     int // of the GCS: own on the head, to join on a worker
	target   string
	token    string
	born     time.Time
	alive    bool
	reason   string
	ended    time.Time // since when the process is gone while the GCS does not know
	lostAt   time.Time // since when the head or the own address is gone

	gcs *gcsServer // on the head
	// members of the head's node table in the order of their joining, the head first; dead ones stay.
	members []*rayNode
	groups  []*placementGroup
}

// placementGroup is a set of bundles, one GPU each.
type placementGroup struct {
	id      []byte
	bundles []bundle
	created bool
}

// bundle is a share of a node; node is nil while the group waits.
type bundle struct {
	resources map[string]float64
	node      *rayNode
}

func randomID(size int) []byte {
	id := make([]byte, size)
	_, _ = rand.Read(id) // It never fails; crypto/rand ends the program first.
	return id
}

func newRay(c *instance, arguments flags) *rayNode {
	n := &rayNode{instance: c, id: randomID(28), born: time.Now(), port: arguments.number(6379, "--port")}
	if c.env("RAY_AUTH_MODE") == "token" {
		n.token = c.rayToken()
	}
	detected := 0
	if len(c.runtime.DeviceRequests) > 0 || c.runtime.Privileged {
		detected = c.host.gpus
	}
	n.gpus = arguments.number(detected, "--num-gpus")
	n.address = arguments.text("", "--node-ip-address")
	if arguments.has("--head") {
		n.head = n
		if n.address == "" {
			// Ray guesses by the route to the outside.
			n.address = c.host.management.String()
		}
		return n
	}
	n.target, n.port = splitHostPort(arguments.text("", "--address"))
	if n.address == "" {
		n.address = c.host.facing(n.target)
	}
	return n
}

// facing is the host's own address on the way to another: the fabric's, if the other is one.
func (h *Host) facing(target string) string {
	address, err := netip.ParseAddr(target)
	if err == nil && h.fabric.IsValid() {
		if network, err := h.fabric.Prefix(24); err == nil && network.Contains(address) {
			return h.fabric.String()
		}
	}
	return h.management.String()
}

func (n *rayNode) isHead() bool { return n.head == n }

func (n *rayNode) ports() []int {
	if n.gcs != nil {
		return []int{n.port}
	}
	return nil
}

// listens: the GCS listens on every address of its host.
func (n *rayNode) listens(_ string, port int) *backlog {
	if n.gcs == nil || port != n.port {
		return nil
	}
	return n.gcs.listener
}

func (n *rayNode) step(now time.Time) {
	if n.addressLost(now) {
		return
	}
	switch {
	case n.isHead():
		n.stepHead(now)
	case n.head == nil:
		n.join(now)
	case n.head.gcs == nil:
		n.stepOrphan(now)
	}
}

// addressLost ends a node whose own address its host no longer has: the GCS cannot check it.
func (n *rayNode) addressLost(now time.Time) bool {
	host := n.instance.host
	address, err := netip.ParseAddr(n.address)
	if err == nil && (host.holds(address) || address == netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return false
	}
	if n.lostAt.IsZero() {
		n.lostAt = now
	}
	if now.Sub(n.lostAt) < host.fleet.timing.AddressLoss {
		return true
	}
	n.die("health check failed due to missing too many heartbeats")
	n.instance.logf("[raylet] This node has been marked dead by the GCS: no interface has the address %s", n.address)
	n.instance.exit(1)
	return true
}

func (n *rayNode) stepHead(now time.Time) {
	c := n.instance
	for _, member := range n.members {
		if !member.ended.IsZero() && now.Sub(member.ended) >= c.host.fleet.timing.NodeLoss {
			member.die("health check failed due to missing too many heartbeats")
		}
	}
	if n.gcs != nil || now.Sub(n.born) < c.host.fleet.timing.GCSUp {
		return
	}
	if c.host.portTaken(n.port, c) {
		c.logf("[gcs_server] Failed to bind to port %d: Address already in use", n.port)
		c.logf("RuntimeError: Failed to start GCS.")
		c.exit(1)
		return
	}
	n.alive = true
	n.members = []*rayNode{n}
	n.gcs = newGCSServer(n)
	c.logf("Local node IP: %s", n.address)
	c.logf("Ray runtime started.")
	c.host.fleet.broadcast()
}

// join looks for the head and enters its table.
func (n *rayNode) join(now time.Time) {
	c, timing := n.instance, n.instance.host.fleet.timing
	if now.Sub(n.born) < timing.Join {
		return
	}
	head := c.host.fleet.findHead(c.host, n.target, n.port)
	if head == nil {
		if now.Sub(n.born) > timing.JoinTimeout {
			c.logf("RuntimeError: Failed to connect to GCS at address %s:%d within 5 seconds.", n.target, n.port)
			c.exit(1)
		}
		return
	}
	if head.token != "" && head.token != c.rayToken() {
		c.logf("ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken")
		c.exit(1)
		return
	}
	n.head, n.alive = head, true
	head.members = append(head.members, n)
	c.logf("Local node IP: %s", n.address)
	c.logf("Ray runtime started.")
	c.host.fleet.broadcast()
}

// stepOrphan ends a worker some time after its head.
func (n *rayNode) stepOrphan(now time.Time) {
	if n.lostAt.IsZero() {
		n.lostAt = now
	}
	if now.Sub(n.lostAt) < n.instance.host.fleet.timing.HeadLoss {
		return
	}
	n.instance.logf("[raylet] Failed to connect to GCS. Shutting down raylet.")
	n.instance.exit(1)
}

// findHead is the Ray head that answers at an address, as seen from a host. The lock is held.
func (f *Fleet) findHead(from *Host, name string, port int) *rayNode {
	target := f.holder(from, name)
	if target == nil {
		return nil
	}
	for _, c := range target.containers {
		if n, ok := c.program.(*rayNode); ok && n.gcs != nil && n.port == port {
			return n
		}
	}
	return nil
}

// die marks the node dead in its head's table.
func (n *rayNode) die(reason string) {
	if n.alive {
		n.alive, n.reason = false, reason
	}
}

// leave is `ray stop`: the raylet says goodbye, then the container ends.
func (n *rayNode) leave() {
	n.die("received SIGTERM")
	n.instance.logf("Some Ray subprocesses exited: raylet [exit code=0]")
	n.instance.exit(1)
}

func (n *rayNode) halt() {
	n.ended = time.Now()
	if n.gcs != nil {
		n.gcs.stop()
		n.gcs = nil
	}
}

// used is how many of the node's GPUs the placement groups of its cluster hold.
func (n *rayNode) used() int {
	used := 0
	if n.head == nil {
		return 0
	}
	for _, group := range n.head.groups {
		for _, part := range group.bundles {
			if group.created && part.node == n {
				used++
			}
		}
	}
	return used
}

// living are the members that are alive, the head first.
func (n *rayNode) living() []*rayNode {
	var living []*rayNode
	for _, member := range n.members {
		if member.alive {
			living = append(living, member)
		}
	}
	return living
}

// place tries to find a GPU for each bundle of a group. The first bundle is bound to the address
// `bound`, unless that is empty.
func (n *rayNode) place(group *placementGroup, bound string) bool {
	taken := map[*rayNode]int{}
	nodes := n.living()
	for i := range group.bundles {
		at := slices.IndexFunc(nodes, func(m *rayNode) bool {
			if i == 0 && bound != "" && m.address != bound {
				return false
			}
			return m.gpus-m.used()-taken[m] > 0
		})
		if at < 0 {
			for j := range group.bundles {
				group.bundles[j].node = nil
			}
			return false
		}
		group.bundles[i].node = nodes[at]
		taken[nodes[at]]++
	}
	group.created = true
	return true
}

// release gives a group's GPUs back.
func (n *rayNode) release(group *placementGroup) {
	n.groups = slices.DeleteFunc(n.groups, func(other *placementGroup) bool { return other == group })
}

// LeakPlacementGroup leaves a created placement group of one GPU for each living node behind on
// the cluster whose head runs on this host, as a killed vLLM can.
func (h *Host) LeakPlacementGroup() {
	h.fleet.t.Helper()
	h.act("leak a placement group", func() error {
		head := h.fleet.anyHead(h)
		if head == nil {
			return refuse(0, "no Ray head runs there")
		}
		group := &placementGroup{id: randomID(18)}
		for range head.living() {
			group.bundles = append(group.bundles, bundle{resources: map[string]float64{"GPU": 1}})
		}
		head.groups = append(head.groups, group)
		if !head.place(group, "") {
			return refuse(0, "its GPUs are in use")
		}
		return nil
	})
}

func (f *Fleet) anyHead(h *Host) *rayNode {
	for _, c := range h.containers {
		if n, ok := c.program.(*rayNode); ok && n.gcs != nil {
			return n
		}
	}
	return nil
}
