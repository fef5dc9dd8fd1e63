package hosttest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// phase of a server.
type phase int

const (
	placing phase = iota
	loading
	serving
)

// serveProgram is a `vllm serve` in a container.
type serveProgram struct {
	instance  *instance
	arguments flags
	born      time.Time
	phase     phase
	since     time.Time // of the phase
	told      time.Time // the last waiting line
	lostAt    time.Time // since when a rank is gone
	port      int
	key       string // to the API

	head  *rayNode
	group *placementGroup
	peers []*serveProgram // the ranks of a server without Ray, itself included
	http  *api
}

func newServer(c *instance, arguments flags) *serveProgram {
	now := time.Now()
	return &serveProgram{instance: c, arguments: arguments, born: now, since: now, port: arguments.number(8000, "--port")}
}

// model is what is served: a folder or a repository.
func (s *serveProgram) model() string {
	if len(s.arguments.positional) > 0 {
		return s.arguments.positional[0]
	}
	return s.arguments.text("", "--model")
}

// ranks is the number of GPUs that the server needs.
func (s *serveProgram) ranks() int {
	return s.arguments.number(1, "--tensor-parallel-size", "-tp") *
		s.arguments.number(1, "--pipeline-parallel-size", "-pp")
}

func (s *serveProgram) onRay() bool {
	backend := s.arguments.text("", "--distributed-executor-backend")
	return backend == "ray" || (backend == "" && s.instance.env("RAY_ADDRESS") != "")
}

// follower is a rank without an API of its own.
func (s *serveProgram) follower() bool { return s.arguments.has("--headless") }

func (s *serveProgram) ports() []int {
	if s.follower() {
		return nil
	}
	return []int{s.port}
}

func (s *serveProgram) listens(address string, port int) *backlog {
	host := s.arguments.text("0.0.0.0", "--host")
	if s.http == nil || port != s.port || (host != "0.0.0.0" && host != "::" && host != address) {
		return nil
	}
	return s.http.listener
}

func (s *serveProgram) step(now time.Time) {
	timing := s.instance.host.fleet.timing
	if now.Sub(s.since) < timing.Place {
		return
	}
	if s.phase != placing && s.rankLost(now) {
		return
	}
	if s.phase == placing {
		s.stepPlacing(now)
	}
	if s.phase == loading && now.Sub(s.since) >= timing.Load {
		s.finish(now)
	}
}

func (s *serveProgram) fail(format string, values ...any) {
	s.instance.logf(format, values...)
	s.instance.exit(1)
}

func (s *serveProgram) stepPlacing(now time.Time) {
	c := s.instance
	if log := c.host.fault.serveLog; log != "" {
		s.fail("%s", log)
		return
	}
	key, found := c.apiKey()
	if !found {
		s.fail("FileNotFoundError: [Errno 2] No such file or directory: '%s'", keyFile)
		return
	}
	s.key = key
	if !s.follower() && c.host.portTaken(s.port, c) {
		s.fail("OSError: [Errno 98] Address already in use")
		return
	}
	var placed bool
	if s.onRay() {
		placed = s.placeOnRay(now)
	} else {
		placed = s.placeWithoutRay(now)
	}
	if placed {
		s.phase, s.since = loading, now
	}
}

// placeOnRay asks the cluster for its GPUs; it says whether it has them.
func (s *serveProgram) placeOnRay(now time.Time) bool {
	c := s.instance
	if s.head == nil {
		name, port := splitHostPort(c.env("RAY_ADDRESS"))
		s.head = c.host.fleet.findHead(c.host, name, port)
		if s.head == nil {
			s.fail("ConnectionError: Failed to connect to the Ray cluster at address %q", c.env("RAY_ADDRESS"))
			return false
		}
		if s.head.token != "" && c.rayToken() != s.head.token {
			s.fail("ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken")
			return false
		}
		own := c.env("VLLM_HOST_IP")
		if own == "" {
			own = c.host.management.String()
		}
		s.group = &placementGroup{id: randomID(18)}
		for i := range s.ranks() {
			resources := map[string]float64{"GPU": 1}
			if i == 0 && s.bound() != "" {
				resources["node:"+own] = 0.001
			}
			s.group.bundles = append(s.group.bundles, bundle{resources: resources})
		}
		s.head.groups = append(s.head.groups, s.group)
		c.logf("INFO Connecting to existing Ray cluster at address: %s...", c.env("RAY_ADDRESS"))
	}
	if s.head.gcs == nil {
		s.fail("ray.exceptions.RaySystemError: System error: Failed to get the GCS address")
		return false
	}
	if s.head.place(s.group, s.bound()) {
		c.host.fleet.broadcast()
		return true
	}
	s.waitForGPUs(now)
	return false
}

// bound is the address that the first bundle insists on: vLLM's legacy executor asks for
// node:<VLLM_HOST_IP>, RayExecutorV2 asks for none.
func (s *serveProgram) bound() string {
	c := s.instance
	if c.env("VLLM_USE_RAY_V2_EXECUTOR_BACKEND") == "1" {
		return ""
	}
	if own := c.env("VLLM_HOST_IP"); own != "" {
		return own
	}
	return c.host.management.String()
}

func (s *serveProgram) waitForGPUs(now time.Time) {
	var specs []string
	for i := range s.group.bundles {
		text := "{'GPU': 1.0}"
		if i == 0 && s.bound() != "" {
			text = fmt.Sprintf("{'node:%s': 0.001, 'GPU': 1.0}", s.bound())
		}
		specs = append(specs, text)
	}
	timing := s.instance.host.fleet.timing
	if s.told.IsZero() || now.Sub(s.told) > timing.PlaceTimeout/10 {
		s.told = now
		s.instance.logf("INFO Waiting for creating a placement group of specs for %d seconds. specs=[%s]. "+
			"Check `ray status` and `ray list nodes` to see if you have enough resources, and make sure the IP "+
			"addresses used by ray cluster are the same as VLLM_HOST_IP environment variable specified in each node "+
			"if you are running on a multi-node.", int(now.Sub(s.born)/(10*time.Millisecond))*10, strings.Join(specs, ", "))
		s.instance.logf("Error: No available node types can fulfill resource request %s. "+
			"Add suitable node types to this cluster to resolve this issue.", specs[0])
	}
	if now.Sub(s.born) > timing.PlaceTimeout {
		s.fail("ValueError: Cannot provide a placement group of placement_group_specs=[%s] within 1800 seconds. "+
			"See `ray status` to make sure the cluster has enough resources.", strings.Join(specs, ", "))
	}
}

// placeWithoutRay waits for the other ranks (--nnodes) and checks the host's own GPUs.
func (s *serveProgram) placeWithoutRay(now time.Time) bool {
	c := s.instance
	nodes := s.arguments.number(1, "--nnodes")
	if each := (s.ranks() + nodes - 1) / nodes; c.host.gpus < each {
		s.fail("ValueError: Free GPUs on this node: %d, but %d are needed for the ranks on it", c.host.gpus, each)
		return false
	}
	s.peers = nil
	for _, host := range c.host.fleet.hosts {
		for _, other := range host.containers {
			peer, ok := other.program.(*serveProgram)
			if ok && !peer.onRay() && (peer == s || (nodes > 1 && peer.meeting() == s.meeting())) {
				s.peers = append(s.peers, peer)
			}
		}
	}
	if len(s.peers) < nodes {
		if now.Sub(s.born) > c.host.fleet.timing.PlaceTimeout {
			s.fail("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. %d/%d clients joined.",
				len(s.peers), nodes)
		}
		return false
	}
	return true
}

// meeting is where the ranks of a server without Ray find each other.
func (s *serveProgram) meeting() string {
	return s.arguments.text("", "--master-addr") + ":" + s.arguments.text("29501", "--master-port")
}

// rankLost ends the server some time after one of its ranks.
func (s *serveProgram) rankLost(now time.Time) bool {
	lost := slices.ContainsFunc(s.peers, func(peer *serveProgram) bool { return peer.instance.program != peer })
	if s.head != nil {
		lost = s.head.gcs == nil || slices.ContainsFunc(s.group.bundles, func(b bundle) bool { return !b.node.alive })
	}
	if !lost {
		return false
	}
	if s.lostAt.IsZero() {
		s.lostAt = now
	}
	if now.Sub(s.lostAt) >= s.instance.host.fleet.timing.RankLoss {
		s.fail("ERROR EngineCore encountered a fatal error.\n" +
			"vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.")
	}
	return true
}

// finish loads the model on every rank's host and opens the API.
func (s *serveProgram) finish(now time.Time) {
	ranks := []*instance{s.instance}
	if s.group != nil {
		for _, part := range s.group.bundles {
			ranks = append(ranks, part.node.instance)
		}
	}
	for _, rank := range ranks {
		if problem := rank.modelProblem(s.model(), s.arguments.text("", "--revision")); problem != "" {
			s.fail("(RayWorkerProc ip=%s) ERROR WorkerProc failed to start.\n%s\n"+
				"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
				rank.host.identity(), problem)
			return
		}
	}
	s.phase, s.since = serving, now
	s.instance.logf("INFO Loading weights took 0.04 seconds")
	if !s.follower() {
		s.http = newAPI(s)
		s.instance.logf("INFO Starting vLLM API server 0 on http://%s:%d", s.arguments.text("0.0.0.0", "--host"), s.port)
		s.instance.logf("INFO:     Application startup complete.")
	}
	s.instance.host.fleet.broadcast()
}

// identity is how Ray's log prefixes name a host.
func (h *Host) identity() netip.Addr {
	if h.fabric.IsValid() {
		return h.fabric
	}
	return h.management
}

func (s *serveProgram) halt() {
	if s.http != nil {
		s.http.close()
		s.http = nil
	}
	if s.head != nil {
		s.head.release(s.group)
	}
}
