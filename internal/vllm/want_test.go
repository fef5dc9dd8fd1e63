package vllm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinesAndDecide(t *testing.T) {
	const session = "c0fc6ca4"
	tests := map[string]struct {
		change func(*Server)
		now    string // session
		lines  []string
		reason string
	}{
		"as wanted":         {func(*Server) {}, session, nil, ""},
		"session not known": {func(*Server) {}, "", nil, ""},
		"missing":           {func(s *Server) { *s = Server{Host: s.Host, Container: "missing"} }, session, []string{"server container is missing"}, "container is missing"},
		"exited": {func(s *Server) { s.Container, s.ExitCode, s.Healthy = "exited", 137, false }, session,
			[]string{"server container is exited (exit code 137), should be running"}, "container is exited (exit code 137)"},
		"killed for memory": {func(s *Server) { s.Container, s.ExitCode, s.OOMKilled, s.Healthy = "exited", 137, true, false }, session,
			[]string{"server container is exited (exit code 137, killed for lack of memory), should be running"}, "container is exited (exit code 137, killed for lack of memory)"},
		"paused":        {func(s *Server) { s.Container = "paused" }, session, []string{"server container is paused, should be running"}, "container is paused"},
		"unhealthy":     {func(s *Server) { s.Healthy = false }, session, []string{"server does not answer /health"}, "/health is not answered"},
		"another image": {func(s *Server) { s.Image = "vllm:0" }, session, []string{"served by another image, vllm:0"}, "image differs"},
		"arguments":     {func(s *Server) { s.Command += " --enforce-eager" }, session, []string{"server was started with other arguments"}, "arguments differ"},
		"environment": {func(s *Server) { s.Env = map[string]string{"NCCL_DEBUG": "TRACE", "VLLM_LOGGING_LEVEL": "DEBUG"} }, session,
			[]string{"environment changed by hand (NCCL_DEBUG, VLLM_LOGGING_LEVEL)"}, "environment differs"},
		"environment lost": {func(s *Server) { s.Env = map[string]string{} }, session, []string{"environment changed by hand (NCCL_DEBUG)"}, "environment differs"},
		"frame": {func(s *Server) { s.SpecDrift = []string{"server: IPC mode is host, not container:ray-pair"} }, session,
			[]string{"server: IPC mode is host, not container:ray-pair"}, "server: IPC mode is host, not container:ray-pair"},
		"Ray recreated by hand": {func(*Server) {}, "eb76e5e3", []string{"server was started for another session of the cluster"}, ""},
		"label of another session": {func(s *Server) { s.ClusterSession = "eb76e5e3" }, session, []string{"server was started for another session of the cluster"},
			"cluster has another session"},
		"another head": {func(s *Server) { s.Host = "10.1.230.181" }, session, nil, "head is another node"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment()
			spec.Env = map[string]string{"NCCL_DEBUG": "INFO"}
			want, seen := Want(spec), Want(spec)
			test.change(&seen)
			var lines []string
			for _, line := range test.lines {
				lines = append(lines, "10.1.230.180: "+line)
			}
			if diff := cmp.Diff(lines, Lines(want, seen, test.now)); diff != "" {
				t.Error(diff)
			}
			if reason := Decide(want, seen); reason != test.reason {
				t.Errorf("reason %q, want %q", reason, test.reason)
			}
		})
	}
	t.Run("the cluster is about to restart", func(t *testing.T) {
		spec := deployment()
		seen := Want(spec)
		spec.Cluster.Session = ""
		if reason := Decide(Want(spec), seen); reason != "cluster has another session" {
			t.Errorf("reason %q", reason)
		}
	})
}

func TestPhase(t *testing.T) {
	for log, want := range map[string]string{
		"": "starting",
		"INFO [model.py:733] Resolved architecture: Qwen3ForCausalLM": "reading the model's configuration",
		"Loading safetensors checkpoint shards:   0% Completed | 0/16 [00:00<?, ?it/s]\n\x1b[36m(RayWorkerProc pid=300)\x1b[0m Loading safetensors checkpoint shards:  19% Completed | 3/16 [00:20<01:20,  6.1s/it]\n": "loading shards 3 of 16",
		"Loading safetensors checkpoint shards: 100% Completed | 6/6 [00:00<00:00]\nLoading weights took 0.05 seconds":                                                                                                 "weights are loaded",
		"Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  49%|████▉     | 33/67 [00:05<00:06]":                                                                                                                "capturing CUDA graphs 33 of 67",
		"Initializing a V1 LLM engine (v0.32.0)\nNo current placement group found. Creating a new placement group.":                                                                                                    "reserving GPUs",
		"Resolved architecture: X\nWARNING Enforce eager set, disabling torch.compile, CUDAGraphs":                                                                                                                     "reading the model's configuration",
		"INFO:     Application startup complete.": "API is up",
	} {
		if got := Phase(log); got != want {
			t.Errorf("%q: got %q, want %q", log, got, want)
		}
	}
}
