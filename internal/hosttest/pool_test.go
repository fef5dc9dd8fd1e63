package hosttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

func pool(t *testing.T, f *Fleet) *fleet.Pool {
	t.Helper()
	p := fleet.NewPool(fleet.Defaults{
		Port: f.Port(), User: User, PrivateKeyFile: f.PrivateKeyFile(), KnownHostsFiles: []string{f.KnownHosts()},
	})
	t.Cleanup(p.Close)
	return p
}

func TestProductRunsAContainer(t *testing.T) {
	f := NewFleet(t, 1)
	ctx := t.Context()
	machine := pool(t, f).Machine(fleet.Connection{Host: f.Host(0).Address()})
	facts, err := machine.Facts(ctx)
	if err != nil || facts.Hostname != "aurora-1" {
		t.Fatalf("facts: %+v, %v", facts, err)
	}
	docker, err := machine.Engine(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.ContainerSpec{
		Name: "ray-pair", Image: DefaultImage, Entrypoint: []string{},
		Command: headSpec(f).Command, Env: map[string]string{"VLLM_HOST_IP": "127.0.100.11"},
		Labels:      map[string]string{fleet.LabelResource: "ray_cluster"},
		Mounts:      []engine.Mount{{Source: "/models", Target: "/models", ReadOnly: true}, {Source: "ray-pair-tmp", Target: "/tmp/ray", Volume: true}},
		NetworkMode: "host", IPCMode: "shareable", SharedMemory: 10 << 30, AllGPUs: true,
		Devices: []string{"/dev/infiniband"}, CapAdd: []string{"IPC_LOCK"}, UnlimitedMemlock: true,
	}
	id, err := docker.Create(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	if err := docker.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	seen, err := machine.Containers(ctx)
	if err != nil || len(seen) != 1 || seen[0].Status != "running" || seen[0].StartedAt.IsZero() {
		t.Fatalf("containers: %+v, %v", seen, err)
	}
	want.Env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if diff := cmp.Diff(want, seen[0].Spec); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	result, err := docker.Exec(ctx, id, []string{"nvidia-smi", "-L"})
	if err != nil || result.ExitCode != 0 || !strings.HasPrefix(result.Stdout, "GPU 0: NVIDIA GB10") {
		t.Errorf("exec: %+v, %v", result, err)
	}
	eventually(t, "the log says that Ray runs", func() bool {
		text, err := docker.Logs(ctx, id, 1)
		return err == nil && strings.Contains(text, "Ray runtime started.")
	})
	if err := docker.Remove(ctx, id, 0); err != nil {
		t.Error(err)
	}
	if err := docker.RemoveVolume(ctx, "ray-pair-tmp", fleet.LabelResource); err != nil || len(f.Host(0).Volumes()) != 0 {
		t.Errorf("remove the volume: %v, left %v", err, f.Host(0).Volumes())
	}
	if got := f.Host(0).Counters(); got.Handshakes != 1 || got.Sessions != 1 {
		t.Errorf("all of it took %+v", got)
	}
}

func TestProductNamesTheSocketsFaults(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)
	for _, test := range []struct {
		name string
		harm func(bool)
		want engine.Kind
	}{
		{"down", h.EngineDown, engine.Down},
		{"denied", h.DenySocket, engine.Denied},
	} {
		test.harm(true)
		_, err := pool(t, f).Machine(fleet.Connection{Host: h.Address()}).Containers(t.Context())
		if failed, ok := errors.AsType[*engine.Error](err); !ok || failed.Kind != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		test.harm(false)
	}
}
