package diagnose

import (
	"strings"
	"testing"
)

// healthy are logs in which nothing is wrong, whatever they say on the way.
func healthy() map[string]string {
	const ready = `
(APIServer pid=1) INFO 11-30 10:15:01 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000
(APIServer pid=1) INFO:     Started server process [1]
(APIServer pid=1) INFO:     Waiting for application startup.
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO:     10.1.230.9:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK
`
	return map[string]string{
		"vLLM 0.11 with Ray, noise": strings.Join(noise, "\n") + ready,
		"vLLM 0.32, RayExecutorV2": `
(APIServer pid=1) INFO 11-30 10:10:01 [api_server.py:2024] vLLM API server version 0.32.0
(EngineCore pid=214) INFO 11-30 10:10:09 [core.py:101] Initializing a V1 LLM engine (v0.32.0) with config: model='/model', tensor_parallel_size=2
(EngineCore pid=214) 2026-11-30 10:10:10,112	INFO worker.py:1821 -- Connecting to existing Ray cluster at address: 192.168.200.12:6379...
(EngineCore pid=214) 2026-11-30 10:10:10,134	INFO worker.py:2004 -- Connected to Ray cluster.
(EngineCore pid=214) (RayWorkerProc pid=71, ip=192.168.200.13) INFO 11-30 10:10:20 [parallel_state.py:1823] world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://192.168.200.12:43210 backend=nccl
(EngineCore pid=214) INFO 11-30 10:10:31 [shm_broadcast.py:289] vLLM message queue communication handle: Handle(local_reader_ranks=[], buffer_handle=None, remote_subscribe_addr='tcp://192.168.200.12:35017', remote_addr_ipv6=False)
Loading safetensors checkpoint shards:  13% Completed | 5/39 [00:11<01:15,  2.21s/it]
Loading safetensors checkpoint shards: 100% Completed | 39/39 [01:26<00:00,  2.22s/it]
(EngineCore pid=214) INFO 11-30 10:12:31 [gpu_worker.py:298] Available KV cache memory: 19.53 GiB
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██████████| 51/51 [00:12<00:00,  4.1it/s]
` + ready,
		"a slow placement, then it goes on": `
INFO 11-30 10:11:12 [ray_utils.py:467] Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check
INFO 11-30 10:11:42 [ray_utils.py:467] Waiting for creating a placement group of specs for 30 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check
INFO 11-30 10:12:12 [gpu_model_runner.py:2602] Starting to load model /model...
`,
		"Ray worker that joins late": `
[2026-11-30 10:10:00,101 W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.
[2026-11-30 10:10:05,101 W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.
2026-11-30 10:10:07,345	INFO scripts.py:1152 -- Local node IP: 192.168.200.13
--------------------
Ray runtime started.
--------------------
[2026-11-30 10:10:07,645 I 1 1] (raylet) store_runner.cc:50: Allowing the Plasma store to use up to 35.92GB of memory.
`,
		"a start that failed, and one that did not": `
INFO 11-30 10:00:00 [api_server.py:1] vLLM API server version 0.15.1
ERROR 11-30 10:03:00 [core.py:842] ValueError: Free memory on device cuda:0 (8.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB).
RuntimeError: Engine core initialization failed. See root cause above.
INFO 11-30 10:05:00 [api_server.py:1] vLLM API server version 0.15.1
` + ready,
		"a stop on request": ready + `
^C(APIServer pid=1) INFO 11-30 12:00:00 [launcher.py:110] Received SIGTERM, shutting down
(APIServer pid=1) INFO:     Shutting down
(EngineCore pid=214) ERROR 11-30 12:00:01 [ray_executor_v2.py:464] RayWorkerProc rank=[1] died unexpectedly, shutting down executor.
(APIServer pid=1) ERROR 11-30 12:00:01 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
[rank1]:[W1130 12:00:02.480 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=67, addr=[bogon]:36214, remote=[bogon]:43145): Broken pipe
[rank0]:[W1130 12:00:02.480 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=3): Connection reset by peer
(APIServer pid=1) INFO:     Finished server process [1]
`,
		"NCCL tells all, by RDMA": `
spark-a:90:90 [0] NCCL INFO Bootstrap: Using enp1s0f0np0:192.168.200.12<0>
spark-a:90:90 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so
spark-a:90:95 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:192.168.200.12<0>
spark-a:90:95 [0] NCCL INFO Using network IB
spark-a:90:95 [0] NCCL INFO comm 0xde702f0 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0
spark-a:90:95 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0
spark-a:90:95 [0] NCCL INFO ncclCommInitRankConfig comm 0xde702f0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId f01000 commId 0x9df62c06a0653412 - Init COMPLETE
`,
		"one node, NCCL without a network": `
spark-a:90:95 [0] NCCL INFO NET/IB : No device found.
spark-a:90:95 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.230.180<0>
spark-a:90:95 [0] NCCL INFO Using network Socket
` + ready,
		"the kernel of a Spark that serves": `
Nov 30 10:00:01 spark-a kernel: Linux version 6.17.0-1014-nvidia (buildd@bos03)
Nov 30 10:00:02 spark-a kernel: mlx5_core 0000:01:00.0: 126.024 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x4 link at 0000:00:00.0 (capable of 252.048 Gb/s with 32.0 GT/s PCIe x8 link)
Nov 30 10:00:03 spark-a kernel: pcieport 0000:00:01.0: AER: Corrected error received: 0000:00:01.0
Nov 30 10:16:01 spark-a kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359
Nov 30 10:16:02 spark-a systemd[1]: Started docker.service - Docker Application Container Engine.
`,
		"vLLM's own multi-node mode": `
(APIServer pid=1) INFO 11-30 10:10:01 [utils.py:233] non-default args: {'model_tag': '/model', 'api_key': ['***'], 'tensor_parallel_size': 2, 'nnodes': 2, 'master_addr': '192.168.200.12'}
(Worker_TP0 pid=88) INFO 11-30 10:10:30 [parallel_state.py:1208] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://192.168.200.12:29501 backend=nccl
(EngineCore_DP0 pid=71) INFO 11-30 10:12:12 [shm_broadcast.py:548] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work
(EngineCore_DP0 pid=71) INFO 11-30 10:13:12 [shm_broadcast.py:548] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work
(EngineCore_DP0 pid=71) INFO 11-30 10:14:20 [core.py:247] init engine (profile, create kv cache, warmup model) took 210.12 seconds
` + ready,
		"a copied variable that did no harm": `
(RayWorkerProc pid=71, ip=192.168.200.13) WARNING 11-30 10:10:05 [system_utils.py:38] Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0' to 'rocep1s0f1'
` + ready,
		"an answer with thought": `{"choices":[{"message":{"role":"assistant","content":"","reasoning":"I should"},"finish_reason":"length"}],"usage":{"completion_tokens":16}}
{"choices":[{"message":{"role":"assistant","content":null,"reasoning":null,"tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}],"usage":{"completion_tokens":16}}`,
		"a user's words":  `INFO 11-30 10:10:11 [logger.py:42] Received request chatcmpl-1: prompt: '<|im_start|>user\nEvery node should have a unique IP address. Got 2 nodes and SafetensorError, what now?'`,
		"a port in use":   "WARNING Address already in use. Retrying with a new port.\nINFO [utils.py:9] Port 8000 is already in use, trying port 8001",
		"a local address": "distributed_init_method=tcp://127.0.0.1:43210 backend=nccl",
		"the download of a model": `model-00012-of-00039.safetensors:  99%|█████████▉| 4.95G/5.00G [00:58<00:00, 88.1MB/s]
model-00012-of-00039.safetensors: 100%|██████████| 5.00G/5.00G [00:59<00:00, 88.1MB/s]`,
		"empty": "",
	}
}

func TestHealthyLogsHaveNoCause(t *testing.T) {
	for name, log := range healthy() {
		t.Run(name, func(t *testing.T) {
			for _, evidence := range []Evidence{{}, pair()} {
				if name == "one node, NCCL without a network" && len(evidence.Nodes) > 1 {
					continue // A pair without RDMA is not healthy.
				}
				if got := report(t, evidence, log); len(got.Causes) > 0 {
					t.Errorf("%d %s: %s %v", got.Causes[0].Row, got.Causes[0].ID, got.Causes[0].Cause, got.Causes[0].Lines)
				}
			}
		})
	}
}

// Near misses look like a symptom and are none.
func TestNearMisses(t *testing.T) {
	for name, log := range map[string]string{
		"a network, nothing known": "distributed_init_method=tcp://10.1.230.180:43210 backend=nccl",
		"a plugin":                 "NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory",
		"an early end by itself":   "INFO [scheduler.py:1] memory threshold of 0.95",
		"a masked key":             "non-default args: {'api_key': ['***'], 'model_tag': '/model'}",
		"no key":                   "Namespace(api_key=None, hf_token=None)",
		"docker inspect":           `"OOMKilled": false, "ExitCode": 0`,
		"signals as guesses":       "(raylet) Possible reasons include: (1) SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet causing SIGSEGV or SIGBUS",
		"the hub, retried":         "WARNING Retrying in 1s: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out.",
		"another lack of a file":   "ls: cannot access 'x': No such file or directory",
		"a refusal of the API":     `INFO:     10.1.230.9:51234 - "GET /v1/models HTTP/1.1" 401 Unauthorized`,
		"a mount without docker":   "bash: ./run: Permission denied",
		"an expected flag":         "INFO usage: vllm serve [--disable-log-requests]",
		"many placements":          "Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0}]. Check",
		"a lane count of a disk":   "nvme 0004:01:00.0: 31.5 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link",
	} {
		t.Run(name, func(t *testing.T) {
			if got := report(t, Evidence{}, log); len(got.Causes) > 0 {
				t.Errorf("%d %s: %s", got.Causes[0].Row, got.Causes[0].ID, got.Causes[0].Cause)
			}
		})
	}
}

func TestHarmlessIsTheAnswer(t *testing.T) {
	got := report(t, pair(), strings.Join(noise, "\n"))
	if len(got.Causes) != 0 || len(got.Harmless) < 12 {
		t.Fatalf("causes %v, %d harmless", got.Causes, len(got.Harmless))
	}
	for _, one := range got.Harmless {
		if one.Row == 32 && strings.Contains(one.Lines[0].Text, "exceeds available GPUs") {
			return
		}
	}
	t.Error("the local view is not among them")
}
