package vllm

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

func TestLook(t *testing.T) {
	tests := map[string]struct {
		change func(*world, *engine.Container)
		lines  []string
	}{
		"as made": {nil, nil},
		"set by hand": {func(_ *world, c *engine.Container) { c.Spec.Env["VLLM_LOGGING_LEVEL"] = "DEBUG" },
			[]string{"environment changed by hand (VLLM_LOGGING_LEVEL)"}},
		"a managed variable set by hand": {func(_ *world, c *engine.Container) { c.Spec.Env["GLOO_SOCKET_IFNAME"] = "eth0" },
			[]string{"environment changed by hand (GLOO_SOCKET_IFNAME)"}},
		"a managed variable is not set": {func(_ *world, c *engine.Container) { delete(c.Spec.Env, "VLLM_HOST_IP") }, []string{"VLLM_HOST_IP is not set"}},
		"arguments": {func(_ *world, c *engine.Container) { c.Spec.Command = append(c.Spec.Command, "--enforce-eager") },
			[]string{"server was started with other arguments"}},
		"frame": {func(_ *world, c *engine.Container) { c.Spec.IPCMode = "host" }, []string{"server: IPC mode is host, not container:ray-pair"}},
		"another build": {func(w *world, c *engine.Container) {
			c.ImageID = "sha256:bbbb"
		}, []string{"environment changed by hand (PATH)", "server and Ray run different builds of the image"}},
		"by somebody else": {func(_ *world, c *engine.Container) { delete(c.Spec.Labels, fleet.LabelResource) },
			[]string{"container vllm-qwen was not made by this provider"}},
		"no answer": {func(w *world, _ *engine.Container) { w.script = nil }, []string{"server does not answer /health"}},
		"ended": {func(_ *world, c *engine.Container) { c.Status, c.ExitCode = "exited", 1 },
			[]string{"server container is exited (exit code 1), should be running"}},
		"the fabric address moved": {func(w *world, _ *engine.Container) { w.facts = spark("aurora-1", "192.168.200.22") }, nil},
		"Ray made anew": {func(_ *world, c *engine.Container) {
			c.Spec.IPCMode, c.Spec.PIDMode = "container:dead", "container:dead"
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, first := deployment(), head()
			spec.Env = map[string]string{"NCCL_DEBUG": "INFO"}
			first.script = []moment{{api: api("qwen", http.StatusOK)}}
			first.serving(t, spec, func(c *engine.Container) {
				if test.change != nil {
					test.change(first, c)
				}
			})
			seen, err := Look(t.Context(), spec, weights.Manifest{}, both(first))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, line := range test.lines {
				lines = append(lines, "10.1.230.180: "+line)
			}
			if diff := cmp.Diff(lines, Lines(Want(spec), seen.Server, "c0fc6ca4")); diff != "" {
				t.Error(diff)
			}
			if len(seen.Listings) != 2 || !seen.Listings["10.1.230.180"].Exists || seen.Listings["10.1.230.181"].Exists {
				t.Errorf("listings %v", seen.Listings)
			}
		})
	}
}

// While the home is not known at plan, the command is shown with "~/" there and here.
func TestLookInTheHome(t *testing.T) {
	spec, first := deployment(), head()
	spec.Source.Path, spec.Cluster.WeightsDir = "~/models/qwen", "~/models"
	first.serving(t, spec, nil)
	seen, err := LookServer(t.Context(), spec, both(first))
	if err != nil || seen.Command != Want(spec).Command {
		t.Errorf("got %v, %s", err, seen.Command)
	}
}

// One question without an answer says nothing; two, a refusal or a wrong answer do.
func TestHealth(t *testing.T) {
	const silent = 0
	tests := map[string]struct {
		answers []int
		healthy bool
		within  time.Duration
	}{
		"at once":           {[]int{http.StatusOK}, true, 0},
		"the second time":   {[]int{silent, http.StatusOK}, true, askTimeout + healthPause},
		"never":             {[]int{silent, silent}, false, 2*askTimeout + healthPause},
		"wrong at once":     {[]int{http.StatusServiceUnavailable}, false, 0},
		"nothing listening": {nil, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := head()
				asked := 0
				if test.answers != nil {
					first.script = []moment{{api: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						asked++
						if answer := test.answers[asked-1]; answer != silent {
							w.WriteHeader(answer)
							return
						}
						<-r.Context().Done()
					})}}
				}
				began := time.Now()
				if healthy := deployment().healthy(t.Context(), first); healthy != test.healthy {
					t.Errorf("healthy is %t", healthy)
				}
				if took := time.Since(began); took != test.within || asked != len(test.answers) {
					t.Errorf("asked %d times in %s", asked, took)
				}
				synctest.Wait()
			})
		})
	}
}

func TestLookFails(t *testing.T) {
	down := errors.New("i/o timeout")
	first := head()
	first.unreachable = down
	if _, err := Look(t.Context(), deployment(), weights.Manifest{}, both(first)); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	if _, err := Look(t.Context(), deployment(), weights.Manifest{}, Machines{}); err == nil {
		t.Error("no machines, no error")
	}
	spec := deployment()
	spec.Source.Path, spec.Cluster.WeightsDir = "~/qwen", "~/"
	machines := both(head())
	other, _ := machines["10.1.230.181"].(*world)
	other.facts.User = agent.User{Home: "/home/other"}
	var problem *weights.Problem
	if _, err := Look(t.Context(), spec, weights.Manifest{}, machines); !errors.As(err, &problem) {
		t.Errorf("got %v", err)
	}
}

func TestHosts(t *testing.T) {
	hosts, err := Hosts(t.Context(), deployment(), both(head()))
	if err != nil || len(hosts) != 2 || hosts[0].Address != "192.168.200.12" || hosts[1].Place.Folder != "/models/qwen" {
		t.Errorf("got %v, %v", hosts, err)
	}
}
