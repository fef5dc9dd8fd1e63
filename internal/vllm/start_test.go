package vllm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// quiet is a cluster that has nothing against it.
func quiet() Cluster {
	return Cluster{
		Gate:      func(context.Context) error { return nil },
		Alive:     func(context.Context) error { return nil },
		Addresses: func(context.Context) ([]string, error) { return []string{"192.168.200.12", "192.168.200.13"}, nil },
	}
}

// guarded is the deployment with an API key, which must not show anywhere.
func guarded() Spec {
	spec := deployment()
	spec.Env = map[string]string{"VLLM_API_KEY": "sesame"}
	return spec
}

// onRay puts the cluster's container on the node.
func (w *world) onRay() *world {
	w.containers = []engine.Container{{ID: "ray", ImageID: imageID, Status: "running", Spec: engine.ContainerSpec{Name: "ray-pair"}}}
	return w
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.script = []moment{
			{after: 5 * time.Second, log: "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:20<01:20]\n"},
			{after: 30 * time.Second, log: "INFO: Application startup complete.\n", api: api("qwen", http.StatusOK)},
		}
		asked := 0
		cluster := quiet()
		cluster.Gate = func(context.Context) error {
			if asked++; asked < 4 {
				return errors.New("2 of 2 GPUs are taken")
			}
			return nil
		}
		var phases []string
		if err := Start(t.Context(), guarded(), Key{}, both(first), cluster, func(phase string) { phases = append(phases, phase) }); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"waiting for free GPUs", "starting container vllm-qwen", "starting (0s)", "loading shards 1 of 2 (6s)", "API is up (30s)",
			"asking for a first completion (30s)", "ready after 30s",
		}
		if diff := cmp.Diff(want, phases); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"create vllm-qwen", "start new"}, first.journal); diff != "" {
			t.Error(diff)
		}
		if first.changed == 0 {
			t.Error("the snapshot was kept")
		}
		synctest.Wait()
	})
}

func TestStartReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head()
		first.facts.Listening = []int{22, 8000}
		first.serving(t, guarded(), nil)
		first.script = []moment{{api: api("qwen", http.StatusOK)}}
		if err := Start(t.Context(), guarded(), Key{}, both(first), quiet(), nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"remove c0003 within 10s", "create vllm-qwen", "start new"}, first.journal); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStartFails(t *testing.T) {
	const placement = "Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check `ray status`\n"
	tests := map[string]struct {
		script  []moment
		prepare func(*world, *Cluster)
		row     int
		says    []string
		last    string // of the journal
		within  time.Duration
	}{
		"the container ends": {
			script: []moment{{log: "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:20<01:20]\n"},
				{after: 9 * time.Second, log: "key sesame\ntorch.OutOfMemoryError: CUDA out of memory.\n", status: "exited", exit: 1}},
			row: 59, says: []string{"exited with exit code 1 after 10s, while loading shards 1 of 2", "share one memory"}, last: "start new", within: 12 * time.Second,
		},
		"the kernel kills it": {
			script: []moment{{after: 3 * time.Second, status: "exited", exit: 137}},
			row:    59, says: []string{"exit code 137", "The kernel killed"}, last: "start new",
		},
		"a rank's log says why": {
			script: []moment{{after: 3 * time.Second, log: "EngineDeadError: EngineCore encountered an issue.\n", status: "exited", exit: 1}},
			prepare: func(w *world, _ *Cluster) {
				w.rayLog = "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM) at node (ID: 8289f87b, IP: 192.168.200.13) over the last time period.\n"
			},
			row: 22, says: []string{"exit code 1", "on 192.168.200.13 (10.1.230.181)"}, last: "start new",
		},
		"the famous bug": {
			script: []moment{{after: 10 * time.Second, log: placement}},
			prepare: func(_ *world, c *Cluster) {
				c.Addresses = func(context.Context) ([]string, error) { return []string{"10.1.230.180", "192.168.200.13"}, nil }
			},
			row: 1, says: []string{"can never become ready", "node 192.168.200.12", "10.1.230.180 and 192.168.200.13"}, last: "remove new within 10s", within: 15 * time.Second,
		},
		"the wrong network": {
			script: []moment{{log: "world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.1.230.180:34995 backend=nccl\n"}},
			row:    106, says: []string{"meet at 10.1.230.180"}, last: "remove new within 10s",
		},
		"a rank's node leaves": {
			script: []moment{{log: "Starting to load model\n"}},
			prepare: func(_ *world, c *Cluster) {
				c.Alive = func(context.Context) error {
					return errors.New("aurora-2 (192.168.200.13) is not a member of the cluster")
				}
			},
			says: []string{"a rank's node left the Ray cluster", "while loading the model", "aurora-2"}, last: "remove new within 10s", within: 5 * time.Second,
		},
		"healthy, but no completion": {
			script: []moment{{log: "Application startup complete.\n", api: api("qwen", http.StatusInternalServerError)}},
			says:   []string{"/health is 200, but a first completion failed", "/v1/completions answered 500: EngineCore encountered an issue."}, last: "start new",
		},
		"another model": {
			script: []moment{{api: api("llama", http.StatusOK)}},
			says:   []string{"it serves llama and not qwen"}, last: "start new",
		},
		"never ready": {
			script: []moment{{log: "Starting to load model\n"}},
			says:   []string{"it was not ready after 30m0s, while loading the model", "deadline exceeded"}, last: "start new",
		},
		"GPUs stay taken": {
			prepare: func(_ *world, c *Cluster) {
				c.Gate = func(context.Context) error { return errors.New("aurora-2: 1 of 1 GPUs are taken") }
			},
			says: []string{"ask the Ray cluster", "aurora-2: 1 of 1 GPUs are taken"}, within: time.Minute,
		},
		"no image": {
			prepare: func(w *world, _ *Cluster) { delete(w.images, image) },
			says:    []string{"find image " + image, "apply the cluster"},
		},
		"no Ray container": {
			prepare: func(w *world, _ *Cluster) { w.containers = nil },
			says:    []string{"join container ray-pair"},
		},
		"no GPU runtime": {
			prepare: func(w *world, _ *Cluster) {
				w.refuse = &engine.Error{Host: w.host, Step: "start container vllm-qwen", Message: `could not select device driver "" with capabilities: [[gpu]]`}
			},
			row: 49, says: []string{"the engine refused", "nvidia-ctk"}, last: "start new",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, cluster := head().onRay(), quiet()
				first.script = test.script
				if test.prepare != nil {
					test.prepare(first, &cluster)
				}
				began := time.Now()
				err := Start(t.Context(), guarded(), Key{}, both(first), cluster, nil)
				var failed *Error
				if !errors.As(err, &failed) {
					t.Fatalf("got %v", err)
				}
				if failed.Finding.Row != test.row {
					t.Errorf("row %d, want %d", failed.Finding.Row, test.row)
				}
				for _, part := range append(test.says, "10.1.230.180: ") {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in: %s", part, err)
					}
				}
				if last := strings.Join(first.journal, "\n"); !strings.HasSuffix(last, test.last) || test.last == "" && last != "" {
					t.Errorf("journal %q, should end in %q", last, test.last)
				}
				if took := time.Since(began); test.within > 0 && took > test.within {
					t.Errorf("took %s", took)
				}
				if strings.Contains(failed.Log+err.Error(), "sesame") {
					t.Error("the API key is in the log")
				}
			})
		})
	}
}

func TestStartIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		first := head().onRay()
		first.script = []moment{{log: "Starting to load model\n"}}
		if err := Start(ctx, guarded(), Key{}, both(first), quiet(), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestStop(t *testing.T) {
	busy := errors.New("2 of 2 GPUs are taken")
	released := func(after time.Duration) func(context.Context) error {
		began := time.Now()
		return func(context.Context) error {
			if time.Since(began) < after {
				return busy
			}
			return nil
		}
	}
	const clean = "clean /models/qwen"
	tests := map[string]struct {
		prepare func(*testing.T, *world)
		after   time.Duration
		journal []string
		late    bool
	}{
		"running":      {func(t *testing.T, w *world) { w.serving(t, deployment(), nil) }, 7 * time.Second, []string{"remove c0003 within 10s", clean}, false},
		"not released": {func(t *testing.T, w *world) { w.serving(t, deployment(), nil) }, time.Hour, []string{"remove c0003 within 10s", clean}, true},
		"gone already": {func(*testing.T, *world) {}, time.Hour, []string{clean}, false},
		"a stranger's": {func(t *testing.T, w *world) {
			w.serving(t, deployment(), func(c *engine.Container) { c.Spec.Labels = nil })
		}, time.Hour, []string{clean}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := head()
				test.prepare(t, first)
				began := time.Now()
				late, err := Stop(t.Context(), deployment(), both(first), released(test.after))
				if err != nil || (late != nil) != test.late || test.late && !errors.Is(late, busy) {
					t.Errorf("got %v, %v", late, err)
				}
				if diff := cmp.Diff(test.journal, first.journal); diff != "" {
					t.Error(diff)
				}
				if took := time.Since(began); took > releaseLimit+time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// An interrupted wait is no late release, and the copies are not cleaned, so the resource must stay.
func TestStopIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		first := head()
		first.serving(t, deployment(), nil)
		busy := func(context.Context) error { return errors.New("2 of 2 GPUs are taken") }
		if late, err := Stop(ctx, deployment(), both(first), busy); late != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", late, err)
		}
	})
}
