package ray

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// inWorld runs a test with its own world and clock.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// up applies what a look finds wanting.
func (w *world) up(t *testing.T, spec Spec) error {
	t.Helper()
	return Apply(t.Context(), spec, w.machines, w.decide(t, spec), nil)
}

func (w *world) decide(t *testing.T, spec Spec) map[string]string {
	t.Helper()
	return Decide(Want(spec), w.look(t, spec).Nodes)
}

func (w *world) look(t *testing.T, spec Spec) Seen {
	t.Helper()
	seen, err := Look(t.Context(), spec, w.machines)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// mustUp brings a cluster up and forgets how.
func (w *world) mustUp(t *testing.T, spec Spec) {
	t.Helper()
	if err := w.up(t, spec); err != nil {
		t.Fatal(err)
	}
	if lines := Lines(Want(spec), w.look(t, spec).Nodes); len(lines) > 0 {
		t.Fatalf("after apply: %q", lines)
	}
	w.journal()
}

func wantJournal(t *testing.T, w *world, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.journal()); diff != "" {
		t.Error(diff)
	}
}

// server is a vLLM on the cluster.
func server(cluster string) engine.ContainerSpec {
	return engine.ContainerSpec{Name: "vllm-chat", Command: []string{"vllm", "serve"},
		Labels: map[string]string{fleet.LabelResource: serverResource, fleet.LabelCluster: cluster}}
}

func TestApplyFromNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		spec.WeightsDir = "~/models"
		if !w.look(t, spec).Gone() {
			t.Error("nothing is there")
		}
		if err := CheckFree(t.Context(), spec, w.machines); err != nil {
			t.Error(err)
		}
		var progress []string
		if err := Apply(t.Context(), spec, w.machines, w.decide(t, spec), func(line string) { progress = append(progress, line) }); err != nil {
			t.Fatal(err)
		}
		log := w.journal()
		if got := strings.Join(log[2:], ", "); got != "aurora-1: start ray-pair, aurora-2: start ray-pair" {
			t.Errorf("journal: %v", log)
		}
		if last := progress[len(progress)-1]; last != "2 nodes are members of the cluster at 192.168.200.12:6379" {
			t.Errorf("progress: %q", progress)
		}
		seen := w.look(t, spec)
		if lines := Lines(Want(spec), seen.Nodes); len(lines) > 0 || GPUTotal(seen.Nodes) != 2 || len(Session(seen.Nodes)) != 8 {
			t.Errorf("%q %d %q", lines, GPUTotal(seen.Nodes), Session(seen.Nodes))
		}
		if err := Apply(t.Context(), spec, w.machines, w.decide(t, spec), nil); err != nil || len(w.journal()) > 0 {
			t.Errorf("a second apply must do nothing: %v", err)
		}
	})
}

func TestApplyReplacesAWorker(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		w.hosts[0].put(server("pair"))
		w.hosts[0].put(server("other"))
		before := Session(w.look(t, spec).Nodes)
		start := time.Now()
		if err := Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.181": "image"}, nil); err != nil {
			t.Fatal(err)
		}
		wantJournal(t, w, "aurora-1: remove vllm-chat", "aurora-2: ray stop", "aurora-2: remove ray-pair",
			"aurora-2: remove volume ray-pair-tmp", "aurora-2: start ray-pair")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s: the old raylet was waited for", took)
		}
		if Session(w.look(t, spec).Nodes) == before {
			t.Error("the session did not change")
		}
	})
}

func TestApplyReplacesTheHead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		if err := Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.180": "image"}, nil); err != nil {
			t.Fatal(err)
		}
		wantJournal(t, w, "aurora-2: remove ray-pair", "aurora-2: remove volume ray-pair-tmp",
			"aurora-1: remove ray-pair", "aurora-1: remove volume ray-pair-tmp", "aurora-1: start ray-pair", "aurora-2: start ray-pair")
	})
}

// TestTheFamousBug has a head that somebody started by hand without --node-ip-address.
func TestTheFamousBug(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		w.hosts[0].containers = nil
		w.nodes = nil
		broken, err := ContainerSpec(spec, spec.Members[0], w.hosts[0].facts)
		if err != nil {
			t.Fatal(err)
		}
		broken.Command = []string{"ray", "start", "--block", "--head", "--port=6379", "--num-gpus=1"}
		w.hosts[0].put(broken)
		time.Sleep(3 * time.Second)
		seen := w.look(t, spec)
		lines := Lines(Want(spec), seen.Nodes)
		if len(lines) == 0 || lines[0] != "aurora-1: Ray node address 10.1.230.180, should be 192.168.200.12" {
			t.Errorf("lines: %q", lines)
		}
		findings := Gate(Want(spec), seen.Table, seen.Facts)
		want := "aurora-1 is registered in Ray by 10.1.230.180 but its identity address is 192.168.200.12: ray start ran there without --node-ip-address; vLLM would ask for node:192.168.200.12 and wait 1800 s, or serve over the management network"
		if len(findings) == 0 || findings[0].Sentence != want {
			t.Errorf("findings: %+v", findings)
		}
		if err := w.up(t, spec); err != nil {
			t.Fatal(err)
		}
		if lines := Lines(Want(spec), w.look(t, spec).Nodes); len(lines) > 0 {
			t.Errorf("after apply: %q", lines)
		}
	})
}

func TestApplyFailures(t *testing.T) {
	image := func(w *world, change func(*engine.Image)) { change(&w.hosts[1].image) }
	tests := map[string]struct {
		prepare  func(w *world, spec *Spec)
		host     string
		cause    string
		evidence string
		limit    time.Duration
		journal  int // entries; 0: nothing was changed
	}{
		"image missing": {
			prepare: func(w *world, _ *Spec) { image(w, func(i *engine.Image) { i.ID = "" }) },
			host:    "10.1.230.181", cause: "aurora-2 does not have the image",
		},
		"image differs": {
			prepare: func(w *world, _ *Spec) { image(w, func(i *engine.Image) { i.ID = "sha256:bbbb" }) },
			host:    "10.1.230.181", cause: "aurora-2 has bbbb under this name, and aurora-1 has aaaaaaaaaaaa",
		},
		"wrong architecture": {
			prepare: func(w *world, _ *Spec) { image(w, func(i *engine.Image) { i.Architecture = "amd64" }) },
			host:    "10.1.230.181", cause: "built for amd64, and aurora-2 is arm64",
		},
		"GPU gone": {
			prepare: func(w *world, _ *Spec) { w.hosts[1].facts.GPUs = nil },
			host:    "10.1.230.181", cause: "aurora-2 has 0 of 1 GPUs",
		},
		"address gone": {
			prepare: func(_ *world, spec *Spec) { spec.Members[1].Address = "192.168.200.99" },
			host:    "10.1.230.181", cause: `aurora-2 cannot be known by "192.168.200.99"`,
		},
		"weights folder denied": {
			prepare: func(w *world, spec *Spec) {
				spec.WeightsDir = "/models"
				w.hosts[0].folder = errors.New("permission denied")
				w.hosts[1].folder = errors.New("permission denied")
			},
			host: "10.1.230.180", cause: "permission denied",
		},
		"port taken": {
			prepare: func(w *world, _ *Spec) { w.hosts[0].facts.Listening = []int{22, 6379} },
			host:    "10.1.230.180", cause: "listens on port 6379 already", limit: portTimeout + time.Second,
		},
		"head ends": {
			prepare: func(w *world, _ *Spec) { w.hosts[0].exits = true },
			host:    "10.1.230.180", cause: "container ray-pair is exited with code 1", evidence: "ray says why", limit: 2 * time.Second, journal: 1,
		},
		"worker ends": {
			prepare: func(w *world, _ *Spec) { w.hosts[1].exits = true },
			host:    "10.1.230.181", cause: "container ray-pair is exited with code 1", evidence: "ray says why", limit: 4 * time.Second, journal: 4,
		},
		"GPU not visible in the container": {
			prepare: func(w *world, _ *Spec) { w.hosts[1].hidden = true },
			host:    "10.1.230.181", cause: "0 of 1 GPUs are visible", evidence: "No devices found", journal: 2,
		},
		"placement group left over": {
			prepare: func(w *world, _ *Spec) {
				w.groups = []gcs.PlacementGroup{{ID: "0b", Name: "old", State: gcs.GroupCreated, Bundles: []map[string]float64{{"GPU": 1}}}}
			},
			host: "10.1.230.180", cause: "placement group old is left over in state CREATED with bundles [{GPU: 1}]", limit: memberTimeout + 5*time.Second, evidence: "ray says why", journal: 2,
		},
		"GPU taken": {
			prepare: func(w *world, _ *Spec) { w.used["192.168.200.13"] = 1 },
			host:    "10.1.230.181", cause: "aurora-2: 1 of 1 GPUs are taken in Ray by an actor or placement group that is still there; actor RayWorkerProc runs there in process 4711", evidence: "ray says why", limit: memberTimeout + 5*time.Second, journal: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				spec := pairSpec()
				test.prepare(w, &spec)
				start := time.Now()
				err := Apply(t.Context(), spec, w.machines, w.decide(t, spec), nil)
				var typed *Error
				if !errors.As(err, &typed) || typed.Host != test.host || !strings.Contains(typed.Error(), test.cause) || !strings.Contains(typed.Evidence, test.evidence) {
					t.Errorf("got %v (%+v)", err, typed)
				}
				if took := time.Since(start); took > test.limit {
					t.Errorf("took %s", took)
				}
				if log := w.journal(); len(log) != test.journal {
					t.Errorf("journal: %q", log)
				}
			})
		})
	}
}

func TestForeignContainer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.hosts[1].put(engine.ContainerSpec{Name: "ray-pair", Image: testImage, Command: []string{"sleep", "1d"}})
		seen := w.look(t, spec)
		if diff := cmp.Diff([]string{"10.1.230.181"}, seen.Foreign); diff != "" {
			t.Error(diff)
		}
		for name, err := range map[string]error{
			"check":   CheckFree(t.Context(), spec, w.machines),
			"apply":   Apply(t.Context(), spec, w.machines, Decide(Want(spec), seen.Nodes), nil),
			"partial": Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.180": "container is missing"}, nil),
			"destroy": Destroy(t.Context(), spec, w.machines, nil),
		} {
			var typed *Error
			if !errors.Is(err, ErrForeign) || !errors.As(err, &typed) || typed.Host != "10.1.230.181" {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantJournal(t, w)
	})
}

// TestForeignVolume has a volume of somebody's own under the cluster's name.
func TestForeignVolume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.hosts[1].volumes["ray-pair-tmp"] = nil
		var typed *Error
		if err := w.up(t, spec); !errors.Is(err, engine.ErrUnlabelled) || !errors.As(err, &typed) || typed.Host != "10.1.230.181" {
			t.Errorf("apply: %v", err)
		}
		wantJournal(t, w)
		if err := Destroy(t.Context(), spec, w.machines, nil); err != nil {
			t.Errorf("destroy: %v", err)
		}
		wantJournal(t, w)
	})
}

func TestDestroy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		w.hosts[0].put(server("pair"))
		if err := Destroy(t.Context(), spec, w.machines, nil); err != nil {
			t.Fatal(err)
		}
		wantJournal(t, w, "aurora-1: remove vllm-chat", "aurora-2: remove ray-pair", "aurora-2: remove volume ray-pair-tmp", "aurora-2: remove volume ray-pair-cache",
			"aurora-1: remove ray-pair", "aurora-1: remove volume ray-pair-tmp", "aurora-1: remove volume ray-pair-cache")
		if err := Destroy(t.Context(), spec, w.machines, nil); err != nil {
			t.Error(err)
		}
		wantJournal(t, w)
	})
}

func TestDestroyAWorker(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		if err := Destroy(t.Context(), withoutHead(spec), w.machines, nil); err != nil {
			t.Fatal(err)
		}
		wantJournal(t, w, "aurora-2: ray stop", "aurora-2: remove ray-pair", "aurora-2: remove volume ray-pair-tmp", "aurora-2: remove volume ray-pair-cache")
		spec.Members = spec.Members[:1]
		if lines := Lines(Want(spec), w.look(t, spec).Nodes); len(lines) > 0 {
			t.Errorf("the rest must go on: %q", lines)
		}
	})
}

func TestLookUnreachable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.hosts[1].down = context.DeadlineExceeded
		_, err := Look(t.Context(), pairSpec(), w.machines)
		var typed *Error
		if !errors.As(err, &typed) || typed.Host != "10.1.230.181" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestCancelled proves that a cancelled run ends at once and the next one finishes its work.
func TestCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		ctx, cancel := context.WithCancel(t.Context())
		err := Apply(ctx, spec, w.machines, w.decide(t, spec), func(line string) {
			if strings.Contains(line, "waiting for the GCS") {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		time.Sleep(5 * time.Second)
		wantJournal(t, w, "aurora-1: start ray-pair")
		if err := w.up(t, spec); err != nil {
			t.Fatal(err)
		}
		wantJournal(t, w, "aurora-2: start ray-pair")
	})
}

func withoutHead(spec Spec) Spec {
	spec.Members = spec.Members[1:]
	return spec
}

// TestMemoryIsAwaited has ranks whose memory comes back slowly, and for longer than is waited.
func TestMemoryIsAwaited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		for name, test := range map[string]struct {
			served   bool
			began    time.Duration
			from, to time.Duration
		}{
			"nothing served":  {false, 0, 0, 20 * time.Second},
			"ten seconds":     {true, 90 * time.Second, 10 * time.Second, 40 * time.Second},
			"over the limit":  {true, 0, memoryTimeout, memoryTimeout + 30*time.Second},
			"all back before": {true, 200 * time.Second, memoryEvery, 30 * time.Second},
		} {
			if test.served {
				w.hosts[0].put(server("pair"))
			}
			w.hosts[1].memoryFrom = time.Now().Add(-test.began)
			start := time.Now()
			if err := Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.181": "image"}, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if took := time.Since(start); took < test.from || took > test.to {
				t.Errorf("%s: took %s, want %s to %s", name, took, test.from, test.to)
			}
		}
	})
}
