package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// look opens a host with the key that may only look.
func look(t *testing.T) (*hosttest.Host, fleet.Machine) {
	t.Helper()
	hosts := hosttest.NewFleet(t, 1, hosttest.WithTiming(hosttest.InstantTiming()))
	pool := fleet.NewPool(fleet.Defaults{
		Port: hosts.Port(), User: hosttest.User, PrivateKeyFile: hosts.ReadOnlyKeyFile(), KnownHostsFiles: []string{hosts.KnownHosts()},
	})
	t.Cleanup(pool.Close)
	return hosts.Host(0), pool.Machine(fleet.Connection{Host: hosts.Host(0).Address()})
}

func TestAKeyThatMayOnlyLook(t *testing.T) {
	host, machine := look(t)
	host.RunContainer("ray-byhand", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}})
	if facts, err := machine.Facts(t.Context()); err != nil || len(facts.GPUs) != 1 {
		t.Errorf("facts: %+v, %v", facts, err)
	}
	containers, err := machine.Containers(t.Context())
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers: %v, %v", containers, err)
	}
	if image, err := machine.Image(t.Context(), containers[0].ImageID); err != nil || image.ID != containers[0].ImageID {
		t.Errorf("image: %v, %v", image, err)
	}
	if _, err := machine.Image(t.Context(), "absent:1"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("absent image: %v", err)
	}
	helper, err := machine.Agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := helper.List(t.Context(), agent.ListRequest{Folder: "/models"}); err != nil {
		t.Error(err)
	}

	var refused *fleet.ReadOnlyError
	for name, act := range map[string]func(context.Context) error{
		"writable": machine.Writable,
		"engine":   func(ctx context.Context) error { _, err := machine.Engine(ctx); return err },
		"dial":     func(ctx context.Context) error { _, err := machine.DialContext(ctx, "tcp", "127.0.0.1:22"); return err },
		"a completion": func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:8000/v1/completions", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			response, err := machine.HTTP().RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		},
		"all of a cluster": func(ctx context.Context) error { return fleet.Writable(ctx, map[string]fleet.Machine{"a": machine}) },
	} {
		if err := act(t.Context()); !errors.As(err, &refused) || refused.Host != host.Address() || refused.Advice() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := helper.Clean(t.Context(), "/models"); err == nil {
		t.Error("the agent cleans")
	}
	if seen := host.Counters(); seen.Connections != 1 || seen.Sessions != 1 || seen.Forwards != 0 {
		t.Errorf("%+v, want one connection with one session", seen)
	}
}

// A key whose line shows one socket, and a configuration that names another: the connection did not break.
func TestAKeyThatShowsAnotherSocket(t *testing.T) {
	hosts := hosttest.NewFleet(t, 1, hosttest.WithTiming(hosttest.InstantTiming()))
	pool := fleet.NewPool(fleet.Defaults{
		Port: hosts.Port(), User: hosttest.User, PrivateKeyFile: hosts.ReadOnlyKeyFile(), KnownHostsFiles: []string{hosts.KnownHosts()},
	})
	t.Cleanup(pool.Close)
	const socket = "/run/user/1000/docker.sock"
	_, err := pool.Machine(fleet.Connection{Host: hosts.Host(0).Address(), Socket: socket}).Containers(t.Context())
	var failed *engine.Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "add --docker-socket "+socket) || !strings.Contains(failed.Advice(), "Drift in CI") {
		t.Errorf("got %v", err)
	}
}

func TestWritableDoesNotAskTheDead(t *testing.T) {
	host, _, machine := open(t)
	if err := machine.Writable(t.Context()); err != nil {
		t.Error("a full key:", err)
	}
	host.StopSSH()
	_, _, dead := open(t)
	if err := fleet.Writable(t.Context(), map[string]fleet.Machine{"a": machine, "b": dead}); err != nil {
		t.Error("a host that does not answer is no reason:", err)
	}
}

func TestReadsNeedNoChannels(t *testing.T) {
	host, _, machine := open(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8000/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := machine.HTTP().RoundTrip(request)
	if err == nil {
		t.Fatal("something listens there:", response.Body.Close())
	}
	var helper *agent.Error
	if !errors.As(err, &helper) || helper.Code != agent.RefusedConnect {
		t.Errorf("nothing listens there: %v", err)
	}
	if seen := host.Counters(); seen.Forwards != 0 || seen.Sessions != 1 {
		t.Errorf("%+v, want one session and no channel", seen)
	}
}

func TestAnswersOfTheStartAreDroppedByAChange(t *testing.T) {
	host, _, machine := open(t)
	if _, err := machine.Agent(t.Context()); err != nil { // It asks for facts and containers already.
		t.Fatal(err)
	}
	host.SetGPUs(0)
	host.RunContainer("ray-byhand", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1000"}})
	machine.Changed()
	if facts, err := machine.Facts(t.Context()); err != nil || len(facts.GPUs) != 0 {
		t.Errorf("%d GPUs, %v", len(facts.GPUs), err)
	}
	if containers, err := machine.Containers(t.Context()); err != nil || len(containers) != 1 {
		t.Errorf("%v, %v", containers, err)
	}
}
