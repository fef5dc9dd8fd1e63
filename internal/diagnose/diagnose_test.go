package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// cluster is the evidence of a healthy pair.
func cluster() Evidence {
	return Evidence{
		Identity:     map[string]string{"10.1.230.180": "192.168.200.12", "10.1.230.181": "192.168.200.13"},
		RayAddresses: []string{"192.168.200.12", "192.168.200.13"},
		Image:        "vllm:1", Port: 8000,
	}
}

func broken() Evidence {
	evidence := cluster()
	evidence.RayAddresses = []string{"10.1.230.180", "192.168.200.13"}
	return evidence
}

func TestExplain(t *testing.T) {
	const waiting = "INFO 11-30 10:11:12 [ray_utils.py:467] Waiting for creating a placement group of specs for 10 seconds. " +
		"specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check `ray status` and `ray list nodes` to see if you have enough resources"
	tests := map[string]struct {
		log      string
		evidence Evidence
		row      int
		says     []string // in cause and next step
	}{
		"1 autoscaler, both addresses": {
			"(autoscaler +12s) Error: No available node types can fulfill resource request {'node:192.168.200.12': 0.001, 'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue.",
			broken(), 1,
			[]string{"on the node 192.168.200.12", "knows its nodes as 10.1.230.180 and 192.168.200.13", "192.168.200.12 (10.1.230.180)", "--node-ip-address"}},
		"1 vLLM's own line":       {waiting, broken(), 1, []string{"on the node 192.168.200.12", "10.1.230.180"}},
		"1 without evidence":      {waiting, Evidence{}, 1, []string{"Ray knows no node by that address"}},
		"1 given up":              {"ValueError: Cannot provide a placement group requiring 2.0 GPUs (placement_group_specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]) within 1800 seconds.", broken(), 1, []string{"10.1.230.180"}},
		"27 address right, waits": {strings.Replace(waiting, "10 seconds", "30 seconds", 1), cluster(), 27, []string{"no free GPU there"}},
		"27 no node asked":        {"Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check", cluster(), 27, []string{"fewer free GPUs"}},
		"27 autoscaler":           {"Error: No available node types can fulfill resource request {'GPU': 1.0}.", cluster(), 27, []string{"fewer free GPUs"}},
		"2": {"RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['a1', 'b2'] and 1 unique IP addresses {'192.168.200.12'}. Please check your network configuration.",
			cluster(), 2, []string{"2 nodes answered with 1 different addresses {'192.168.200.12'}", "192.168.200.13 (10.1.230.181)"}},
		"4": {"OSError: [Errno 101] Network is unreachable", cluster(), 4, []string{"no default route"}},
		"6": {"WARNING Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0' to 'rocep1s0f1'", cluster(), 6, []string{"NCCL_IB_HCA=rocep1s0f1"}},
		"8": {"[rank8] Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:14215",
			cluster(), 8, []string{"loopback address 127.0.1.1", "GLOO_SOCKET_IFNAME"}},
		"8 without an address": {"RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error", cluster(), 8, []string{"cannot reach each other"}},
		"106": {"INFO [parallel_state.py:1823] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.1.230.180:43210 backend=nccl", cluster(), 106,
			[]string{"meet at 10.1.230.180", "192.168.200.12 (10.1.230.180)"}},
		"13":         {"[2026-11-30 10:11:12,345 W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.", cluster(), 13, []string{"at 192.168.200.12:6379.", "firewall"}},
		"20":         {`OCI runtime create failed: exec: "ray": executable file not found in $PATH: unknown`, cluster(), 20, []string{"vllm:1 has no Ray"}},
		"20 in vLLM": {"ValueError: Failed to import Ray: No module named 'ray'.Please install Ray with `pip install ray`.", cluster(), 20, []string{"vllm:1 has no Ray"}},
		"21": {"RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.53.0\n    Python: 3.12.3\nThis process on node 192.168.200.13 was started with:\n    Ray: 2.60.0\n    Python: 3.11.2\n",
			cluster(), 21, []string{"started with Ray 2.53.0 and Python 3.12.3", "has Ray 2.60.0 and Python 3.11.2"}},
		"22": {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 192.168.200.13, ID: fc2befb2) where the task (actor ID: f9cc, name=RayWorkerProc.__init__, pid=4331, memory used=2.22GB) was running was 113.76GB / 119.70GB (0.950345), which exceeds the memory usage threshold of 0.95.",
			cluster(), 22, []string{"on 192.168.200.13 at 113.76GB of 119.70GB", "RAY_memory_monitor_refresh_ms"}},
		"22 raylet": {"(raylet) node_manager.cc:3277: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8289f87b, IP: 192.168.200.12) over the last time period.",
			cluster(), 22, []string{"on 192.168.200.12"}},
		"24":               {"Session name session_2026-11-30_10-00-00_1_1 does not match persisted value session_2026-11-29_09-00-00_1_1. Perhaps there was an error connecting to Redis.", cluster(), 24, []string{"older Ray"}},
		"26":               {"ValueError: Current node has no GPU available. current_node_resource={'CPU': 2.0}. vLLM engine cannot start without GPU.", cluster(), 26, []string{"no free GPU"}},
		"29":               {"(raylet) A worker died: SIGBUS", cluster(), 29, []string{"/dev/shm"}},
		"34":               {"misc/ibvwrap.cc:291 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1", cluster(), 34, []string{"GID index"}},
		"36":               {"NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", cluster(), 36, []string{"unlimited memlock"}},
		"36 by the kernel": {"NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", Evidence{Kernel: "7.0.0-1019-nvidia"}, 36, []string{"kho=off"}},
		"49":               {`Error response from daemon: could not select device driver "" with capabilities: [[gpu]]`, cluster(), 49, []string{"nvidia-ctk runtime configure"}},
		"50":               {"Failed to initialize NVML: Unknown Error", cluster(), 50, []string{"daemon-reload"}},
		"51":               {"RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination", cluster(), 51, []string{"compatibility library"}},
		"53":               {"exec /usr/local/bin/vllm: exec format error", cluster(), 53, []string{"vllm:1 is built for another processor"}},
		"54":               {"ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", cluster(), 54, []string{"sm_121a"}},
		"57 page cache": {"ValueError: Free memory on device cuda:0 (8.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB). Decrease GPU memory utilization",
			Evidence{Memory: agent.Memory{Total: 121 * gib, Available: 118 * gib, Free: 8 * gib}}, 57, []string{"wants 109.52 GiB", "sees 8.25 of 121.69 GiB", "110 GiB of the host's memory are page cache", "drop_caches"}},
		"57 too much": {"ValueError: Free memory on device cuda:0 (101.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.87, 105.87 GiB).",
			Evidence{Memory: agent.Memory{Total: 121 * gib, Available: 102 * gib, Free: 101 * gib}}, 57, []string{"Lower --gpu-memory-utilization"}},
		"59":            {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", cluster(), 59, []string{"share one memory"}},
		"59 the kernel": {"nothing to see here", Evidence{OOMKilled: true}, 59, []string{"The kernel killed"}},
		"69":            {"safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", cluster(), 69, []string{"(MetadataIncompleteBuffer)"}},
		"73":            {"huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url", cluster(), 73, []string{"licence"}},
		"81":            {"ValueError: Model architectures ['Qwen3_5MoeForConditionalGeneration'] are not supported for now. Supported architectures: dict_keys([])", cluster(), 81, []string{"'Qwen3_5MoeForConditionalGeneration'", "newer vLLM"}},
		"81 transformers": {"ValueError: The checkpoint you are trying to load has model type `qwen3_5_moe` but Transformers does not recognize this architecture.", cluster(), 81,
			[]string{"model type qwen3_5_moe"}},
		"83":              {"vllm serve: error: unrecognized arguments: --disable-log-requests", cluster(), 83, []string{"does not know --disable-log-requests.", "--help=all"}},
		"85":              {"TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s", cluster(), 85, []string{"VLLM_ENGINE_READY_TIMEOUT_S"}},
		"85 by the clock": {"RuntimeError: Engine core initialization failed. See root cause above.", Evidence{Waited: 10 * time.Minute}, 85, []string{"VLLM_ENGINE_READY_TIMEOUT_S"}},
		"86":              {"TimeoutError: RPC call to sample_tokens timed out.", cluster(), 86, []string{"sample_tokens"}},
		"88":              {"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", cluster(), 88, []string{"1 of 2 ranks"}},
		"89":              {"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", cluster(), 89, []string{"rank died"}},
		"92":              {"OSError: [Errno 98] Address already in use", cluster(), 92, []string{"port 8000"}},
		"the cause before the consequence": {"RuntimeError: Engine core initialization failed. See root cause above.\nray.exceptions.ActorDiedError: The actor died\ntorch.OutOfMemoryError: CUDA out of memory.",
			cluster(), 59, nil},
		"colours and Ray's prefix": {"\x1b[36m(RayWorkerProc pid=71, ip=192.168.200.13)\x1b[0m torch.OutOfMemoryError: CUDA out of memory.", cluster(), 59, nil},

		"nothing":                  {"INFO:     Application startup complete.", cluster(), 0, nil},
		"the right network":        {"distributed_init_method=tcp://192.168.200.12:43210 backend=nccl", cluster(), 0, nil},
		"one node":                 {"distributed_init_method=tcp://127.0.0.1:43210 backend=nccl", cluster(), 0, nil},
		"a network, nothing known": {"distributed_init_method=tcp://10.1.230.180:43210 backend=nccl", Evidence{}, 0, nil},
		"a slow placement":         {waiting, cluster(), 0, nil},
		"a local view":             {"WARNING Tensor parallel size (2) exceeds available GPUs (1). This may result in Ray placement group allocation failures.", cluster(), 0, nil},
		"a port tried again":       {"WARNING Address already in use. Retrying with a new port.", cluster(), 0, nil},
		"an early end":             {"RuntimeError: Engine core initialization failed. See root cause above.", Evidence{Waited: time.Minute}, 0, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			finding, found := Explain("first line\n"+test.log+"\nlast line", test.evidence)
			if found != (test.row != 0) || finding.Row != test.row {
				t.Fatalf("row %d, want %d: %s", finding.Row, test.row, finding)
			}
			for _, part := range test.says {
				if !strings.Contains(finding.String(), part) {
					t.Errorf("%q is not in: %s", part, finding)
				}
			}
			if found && (finding.Cause == "" || finding.Next == "" || strings.Contains(finding.String(), "  ")) {
				t.Errorf("unfinished: %s", finding)
			}
		})
	}
}

func TestExplainNamesTheHost(t *testing.T) {
	finding, _ := Explain("\x1b[36m(RayWorkerProc pid=71, ip=192.168.200.13)\x1b[0m torch.OutOfMemoryError: CUDA out of memory.", cluster())
	if finding.Host != "10.1.230.181" || finding.Line != "(RayWorkerProc pid=71, ip=192.168.200.13) torch.OutOfMemoryError: CUDA out of memory." {
		t.Errorf("host %q, line %q", finding.Host, finding.Line)
	}
}

// Only what cannot heal ends a start that still runs.
func TestExplainFatal(t *testing.T) {
	for log, want := range map[string]bool{
		"Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}]. Check": true,
		"OSError: [Errno 101] Network is unreachable":                               false,
		"Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.": false,
	} {
		if finding, _ := Explain(log, broken()); finding.Fatal != want {
			t.Errorf("%s: fatal %v", log, finding.Fatal)
		}
	}
}

func FuzzExplain(f *testing.F) {
	f.Add("Every node should have a unique IP address. Got 2 nodes", true)
	f.Add("Version mismatch: The cluster was started with:\n", false)
	f.Fuzz(func(t *testing.T, log string, known bool) {
		evidence := Evidence{}
		if known {
			evidence = broken()
		}
		if finding, found := Explain(log, evidence); found && (finding.Cause == "" || finding.Next == "") {
			t.Errorf("unfinished: %+v", finding)
		}
	})
}
