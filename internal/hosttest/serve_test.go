package hosttest

import (
	"net/http"
	"strings"
	"testing"
)

func TestServeWithoutRay(t *testing.T) {
	f := NewFleet(t, 2, WithTiming(InstantTiming()))
	spec := func(rank string, more ...string) Spec {
		return Spec{Image: DefaultImage, Host: hostConfig(), Command: append([]string{
			"vllm", "serve", "/models/tiny", "--tensor-parallel-size=2", "--nnodes=2", "--node-rank=" + rank,
			"--master-addr=127.0.100.11",
		}, more...)}
	}
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	f.Host(0).RunContainer("vllm-0", spec("0", "--port=9000"))
	c := mustDial(t, f, 0)
	if _, _, err := get(t, c, http.MethodGet, "http://127.0.0.1:9000/health", ""); err == nil {
		t.Error("one rank of two is healthy")
	}
	f.Host(1).RunContainer("vllm-1", spec("1", "--headless"))
	eventually(t, "healthy", func() bool {
		code, _, err := get(t, c, http.MethodGet, "http://127.0.0.1:9000/health", "")
		return err == nil && code == http.StatusOK
	})
	f.Host(1).RemoveContainer("vllm-1")
	eventually(t, "the other rank dies", func() bool {
		server, _ := f.Host(0).Container("vllm-0")
		return server.Status == "exited" && server.ExitCode == 1
	})
}

func TestServeFromTheHubCache(t *testing.T) {
	f := NewFleet(t, 1, WithTiming(InstantTiming()))
	h := f.Host(0)
	commit := strings.Repeat("a1", 20)
	base := h.Home() + "/.cache/huggingface/hub/models--example--tiny"
	h.WriteModel(base + "/snapshots/" + commit)
	h.WriteFile(base+"/refs/main", []byte(commit))
	host := hostConfig()
	host.Mounts[0].Source, host.Mounts[0].Target = h.Home()+"/.cache/huggingface", "/hub"
	run := func(name, revision, port string) Container {
		h.RunContainer(name, Spec{
			Image: DefaultImage, Host: host, Env: map[string]string{"HF_HOME": "/hub"},
			Command: []string{"vllm", "serve", "example/tiny", "--revision", revision, "--port", port},
		})
		seen, _ := h.Container(name)
		return seen
	}
	for i, revision := range []string{"main", commit} {
		if seen := run("vllm-"+revision, revision, []string{"8000", "8001"}[i]); seen.Status != "running" {
			t.Errorf("%s: %+v", revision, seen)
		}
	}
	if seen := run("vllm-none", "other", "8002"); seen.Status != "exited" || !strings.Contains(seen.Logs, "LocalEntryNotFoundError") {
		t.Errorf("a revision that is not there: %+v", seen)
	}
}

// A server can say 200 to /health and die at the first request.
func TestFailCompletions(t *testing.T) {
	f := NewFleet(t, 2, WithTiming(InstantTiming()))
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	startCluster(t, f)
	f.Host(0).RunContainer("vllm-pair", serveSpec(f))
	c := mustDial(t, f, 0)
	waitHealthy(t, c)
	f.Host(0).FailCompletions(true)
	code, text, err := get(t, c, http.MethodPost, "http://127.0.0.1:8000/v1/completions", `{"prompt": "x"}`)
	if err != nil || code != http.StatusInternalServerError {
		t.Errorf("completion: %d, %s, %v", code, text, err)
	}
	eventually(t, "the server dies", func() bool {
		server, _ := f.Host(0).Container("vllm-pair")
		return server.Status == "exited"
	})
}

func TestPower(t *testing.T) {
	f := NewFleet(t, 2, WithTiming(InstantTiming()))
	startCluster(t, f)
	f.Host(1).PowerOff()
	if _, err := dialHost(t, f, 1); err == nil {
		t.Error("a host without power answers")
	}
	c := mustDial(t, f, 0)
	waitNodes(t, c, "127.0.100.11")
	f.Host(1).PowerOn()
	mustDial(t, f, 1)
	if worker, _ := f.Host(1).Container("ray-pair"); worker.Status != "exited" {
		t.Errorf("after power: %+v", worker)
	}
}
