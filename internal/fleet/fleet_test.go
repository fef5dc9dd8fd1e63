package fleet_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

func open(t *testing.T) (*hosttest.Host, *fleet.Pool, fleet.Machine) {
	t.Helper()
	hosts := hosttest.NewFleet(t, 1, hosttest.WithTiming(hosttest.InstantTiming()))
	pool := fleet.NewPool(fleet.Defaults{
		Port: hosts.Port(), User: hosttest.User, PrivateKeyFile: hosts.PrivateKeyFile(), KnownHostsFiles: []string{hosts.KnownHosts()},
	})
	t.Cleanup(pool.Close)
	return hosts.Host(0), pool, pool.Machine(fleet.Connection{Host: hosts.Host(0).Address()})
}

func TestOneConnectionForAll(t *testing.T) {
	host, pool, machine := open(t)
	if again := pool.Machine(fleet.Connection{Host: host.Address(), Socket: engine.DefaultSocket}); again != machine {
		t.Error("the same settings give another machine")
	}
	if other := pool.Machine(fleet.Connection{Host: host.Address(), User: "somebody"}); other == machine {
		t.Error("another user gives the same machine")
	}
	for port := 55290; port < 55300; port++ { // As characters these are all the same.
		if pool.Machine(fleet.Connection{Host: host.Address(), Port: port}) == pool.Machine(fleet.Connection{Host: host.Address(), Port: port + 1}) {
			t.Errorf("ports %d and %d give the same machine", port, port+1)
		}
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := machine.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := machine.Containers(t.Context()); err != nil {
				t.Error(err)
			}
			if conn, err := machine.DialContext(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
				t.Error("something answers on port 1", conn.Close())
			}
		})
	}
	group.Wait()
	if seen := host.Counters(); seen.Connections != 1 || seen.Sessions != 1 {
		t.Errorf("%d connections and %d sessions, want one of each", seen.Connections, seen.Sessions)
	}
}

func TestSnapshot(t *testing.T) {
	host, _, machine := open(t)
	gpus := func() int {
		t.Helper()
		facts, err := machine.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(facts.GPUs)
	}
	if got := gpus(); got != 1 {
		t.Fatalf("%d GPUs", got)
	}
	host.SetGPUs(0)
	if got := gpus(); got != 1 {
		t.Errorf("the snapshot is not kept: %d GPUs", got)
	}
	machine.Changed()
	if got := gpus(); got != 0 {
		t.Errorf("the snapshot is not dropped: %d GPUs", got)
	}
}

func TestContainersAreOursOrInOurPlace(t *testing.T) {
	host, _, machine := open(t)
	host.RunContainer("ray-byhand", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}})
	host.RunContainer("labelled", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}, Labels: map[string]string{fleet.LabelResource: "ray_cluster"}})
	host.RunContainer("postgres", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}})
	containers, err := machine.Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, container := range containers {
		names = append(names, container.Spec.Name)
	}
	if want := []string{"labelled", "ray-byhand"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestImage(t *testing.T) {
	host, _, machine := open(t)
	if _, err := machine.Image(t.Context(), "absent:1"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	host.AddImage(hosttest.Image{Reference: "absent:1"})
	byName, err := machine.Image(t.Context(), "absent:1")
	if err != nil {
		t.Fatal("a missing image is remembered as missing:", err)
	}
	host.RemoveImage("absent:1")
	if byID, err := machine.Image(t.Context(), byName.ID); err != nil || byID.ID != byName.ID {
		t.Errorf("not known by its id: %v", err)
	}
}

func TestConnectionsComeBack(t *testing.T) {
	host, _, machine := open(t)
	if _, err := machine.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	host.CutSSH()
	machine.Changed()
	deadline := time.Now().Add(5 * time.Second)
	for {
		_, err := machine.Facts(t.Context())
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the machine does not come back:", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := host.Counters().Connections; got != 2 {
		t.Errorf("%d connections, want the lost one and its successor", got)
	}
}

func TestFailureIsRemembered(t *testing.T) {
	host, _, machine := open(t)
	host.DenyUser(true)
	for range 3 {
		var ssh *sshx.Error
		if _, err := machine.Facts(t.Context()); !errors.As(err, &ssh) || ssh.Kind != sshx.AuthFailed {
			t.Fatalf("got %v", err)
		}
	}
	if got := host.Counters().Connections; got != 1 {
		t.Errorf("%d attempts for three resources on one refusing host", got)
	}
}

func TestSilentSocketIsExplained(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(*hosttest.Host)
		kind  engine.Kind
		says  string
	}{
		"engine down":   {func(h *hosttest.Host) { h.EngineDown(true) }, engine.Down, "no socket at " + engine.DefaultSocket},
		"no permission": {func(h *hosttest.Host) { h.DenySocket(true) }, engine.Denied, "user aurora (groups: "},
	} {
		t.Run(name, func(t *testing.T) {
			host, _, machine := open(t)
			test.fault(host)
			_, err := machine.Containers(t.Context())
			var docker *engine.Error
			if !errors.As(err, &docker) || docker.Kind != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestForbiddenForwardingIsOfNoConcernToReads(t *testing.T) {
	host, _, machine := open(t)
	host.ForbidForwarding(true)
	if _, err := machine.Containers(t.Context()); err != nil {
		t.Error(err)
	}
	acts, err := machine.Engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var docker *engine.Error
	if _, err := acts.Version(t.Context()); !errors.As(err, &docker) || docker.Kind != engine.Down || !strings.Contains(err.Error(), "AllowStreamLocalForwarding") {
		t.Errorf("got %v", err)
	}
}

func TestDialIsAsSeenFromTheMachine(t *testing.T) {
	_, _, machine := open(t)
	var ssh *sshx.Error
	conn, err := machine.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", "1"))
	if err == nil {
		t.Fatal("something answers on port 1", conn.Close())
	}
	if !errors.As(err, &ssh) || ssh.Kind != sshx.ConnectFailed {
		t.Errorf("got %v", err)
	}
}

func TestAgentThatEndedIsReplaced(t *testing.T) {
	host, _, machine := open(t)
	first, err := machine.Agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			next, err := machine.Agent(t.Context())
			if err != nil || next == first {
				t.Errorf("got the ended agent, or %v", err)
				return
			}
			if _, err := next.Facts(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if seen := host.Counters(); seen.Connections != 1 || seen.Sessions != 2 {
		t.Errorf("%d connections and %d sessions, want 1 and 2", seen.Connections, seen.Sessions)
	}
}

func TestFrozenEngine(t *testing.T) {
	host, _, machine := open(t)
	host.FreezeEngine(true)
	reason := errors.New("given up by the caller")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, reason)
	defer cancel()
	if _, err := machine.Containers(ctx); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := machine.Facts(t.Context()); err != nil {
		t.Error("the agent needs the engine:", err)
	}
	host.FreezeEngine(false)
	if _, err := machine.Containers(t.Context()); err != nil {
		t.Error(err)
	}
}
