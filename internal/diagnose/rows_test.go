package diagnose

import (
	"net/netip"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// pair is the evidence of a healthy pair.
func pair() Evidence {
	return Evidence{
		Nodes: map[string]Node{"10.1.230.180": {Identity: "192.168.200.12"}, "10.1.230.181": {Identity: "192.168.200.13"}},
		Ray:   table("192.168.200.12", "192.168.200.13"),
		Image: "vllm:1", Port: 8000,
	}
}

func table(addresses ...string) []RayNode {
	var nodes []RayNode
	for _, address := range addresses {
		nodes = append(nodes, RayNode{Address: address, Alive: true, GPUs: 1, FreeGPUs: 1})
	}
	return nodes
}

// broken is a pair whose head Ray knows by its management address.
func broken() Evidence {
	evidence := pair()
	evidence.Ray = table("10.1.230.180", "192.168.200.13")
	return evidence
}

// over is a pair whose head Ray knows by an address of another interface.
func over(device, address string) Evidence {
	evidence := pair()
	evidence.Ray = table(address, "192.168.200.13")
	node := evidence.Nodes["10.1.230.180"]
	node.Facts = &agent.Facts{Interfaces: []agent.Interface{{Name: device, Addresses: []netip.Prefix{netip.MustParsePrefix(address + "/24")}}}}
	evidence.Nodes["10.1.230.180"] = node
	return evidence
}

// memory is a pair whose head has that memory, in GiB.
func memory(total, available, free int64) Evidence {
	evidence := pair()
	evidence.Host = "10.1.230.180"
	evidence.Nodes[evidence.Host] = Node{
		Identity: "192.168.200.12",
		Facts:    &agent.Facts{Memory: agent.Memory{Total: total * gib, Available: available * gib, Free: free * gib}},
	}
	return evidence
}

func kernel(release string) Evidence {
	evidence := pair()
	evidence.Host = "10.1.230.180"
	evidence.Nodes[evidence.Host] = Node{Facts: &agent.Facts{Kernel: release}}
	return evidence
}

const waitingLine = "INFO 11-30 10:11:12 [ray_utils.py:467] Waiting for creating a placement group of specs for 10 seconds. " +
	"specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check `ray status` and `ray list nodes` to see if you have enough resources"

// rowTest is a log and what it shall be told to be.
type rowTest struct {
	name     string
	log      string
	evidence Evidence
	row      int
	says     []string // in cause and next step
}

// controlRows are of identity, Ray and the link.
func controlRows() []rowTest {
	return []rowTest{
		{"autoscaler, both addresses",
			"(autoscaler +12s) Error: No available node types can fulfill resource request {'node:192.168.200.12': 0.001, 'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue.",
			broken(), 1, []string{"on the node 192.168.200.12", "knows its nodes as 10.1.230.180 and 192.168.200.13", "192.168.200.12 (10.1.230.180)", "--node-ip-address"}},
		{"autoscaler of newer Ray", "(autoscaler +1m3s) Error: No available node types can fulfill resource requests {'GPU': 1.0, 'node:192.168.200.12': 0.001}*1. Add suitable node types to this cluster to resolve this issue.",
			broken(), 1, []string{"on the node 192.168.200.12"}},
		{"vLLM's own line", waitingLine, broken(), 1, []string{"on the node 192.168.200.12", "10.1.230.180"}},
		{"without evidence", waitingLine, Evidence{}, 1, []string{"Ray knows no node by that address"}},
		{"cut off", waitingLine[:160], broken(), 1, []string{"on the node 192.168.200.12"}},
		{"given up", "ValueError: Cannot provide a placement group requiring 2.0 GPUs (placement_group_specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]) within 1800 seconds.", broken(), 1, []string{"10.1.230.180"}},
		{"given up, vLLM 0.11", "ValueError: Cannot provide a placement group of placement_group_specs=[{'node:192.168.200.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}] within 1800 seconds. See `ray status` and `ray list nodes` to make sure the cluster has enough resources.", broken(), 1, nil},
		{"address right, waits", "INFO 11-30 10:11:42 [ray_utils.py:467] Waiting for creating a placement group of specs for 30 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]. Check", pair(), 27, []string{"no free GPU there"}},
		{"no node asked", "Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check", pair(), 27, []string{"fewer free GPUs"}},
		{"plain autoscaler", "Error: No available node types can fulfill resource request {'GPU': 1.0}.", pair(), 27, []string{"fewer free GPUs"}},
		{"a worker is missing", "Error: No available node types can fulfill resource request {'GPU': 1.0}.", func() Evidence { e := pair(); e.Ray = table("192.168.200.12"); return e }(), 28, []string{"1 of 2 nodes"}},
		{"Wi-Fi", waitingLine, over("wlP9s9", "10.0.0.7"), 3, []string{"10.0.0.7", "Wi-Fi"}},
		{"a VPN", waitingLine, over("tailscale0", "100.101.2.3"), 19, []string{"100.101.2.3", "VPN"}},
		{"not unique", "RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['a1', 'b2'] and 1 unique IP addresses {'192.168.200.12'}. Please check your network configuration. If you set `VLLM_HOST_IP` environment variable, make sure it is unique for each node.",
			pair(), 2, []string{"2 nodes answered with 1 different addresses {'192.168.200.12'}", "192.168.200.13 (10.1.230.181)"}},
		{"no route", "OSError: [Errno 101] Network is unreachable", pair(), 4, []string{"no default route"}},
		{"address guessed", "WARNING 11-30 10:11:12 [network_utils.py:36] Failed to get the IP address, using 0.0.0.0 by default.The value can be set by the environment variable VLLM_HOST_IP or HOST_IP.", pair(), 4, nil},
		{"copied", "WARNING 11-30 10:11:12 [system_utils.py:38] Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0' to 'rocep1s0f1'", pair(), 6, []string{"NCCL_IB_HCA=rocep1s0f1"}},
		{"copied, then it fails", "WARNING 11-30 10:11:12 [system_utils.py:38] Overwriting environment variable NCCL_IB_GID_INDEX from '5' to '3'\nspark-b:311:311 [0] misc/ibvwrap.cc:376 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, curr state INIT", pair(), 6, []string{"NCCL_IB_GID_INDEX=3"}},
		{"no interface", "spark-b:214:214 [0] bootstrap.cc:126 NCCL WARN Bootstrap : no socket interface found", pair(), 7, nil},
		{"no interface for Gloo", "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: enp1s0f0np0", pair(), 7, []string{"enp1s0f0np0"}},
		{"Gloo on loopback", "[rank8] Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:14215", pair(), 8, []string{"loopback address 127.0.1.1", "GLOO_SOCKET_IFNAME"}},
		{"Gloo without an address", "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error", pair(), 8, []string{"cannot reach each other"}},
		{"non-socket", "spark-a:90:90 [0] misc/socket.cc:58 NCCL WARN socketProgress: Call to recv from 10.1.230.181<46231> failed : Socket operation on non-socket", pair(), 9, nil},
		{"NCCL on the wrong interface", "spark-a:90:90 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.230.181<46231> failed : No route to host", pair(), 9, []string{"no identity address", "10.1.230.181"}},
		{"link-local head", "[2026-11-30 10:11:12,345 W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address 169.254.11.7:6379 within 5 seconds.", pair(), 11, []string{"link-local"}},
		{"address gone", "OSError: [Errno 99] Cannot assign requested address", pair(), 12, nil},
		{"address gone, torch", "[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29501, useIpv6: false, code: -99, name: EADDRNOTAVAIL, message: Cannot assign requested address; The server socket has failed to bind to 192.168.200.12:29501 (errno: 99 - Cannot assign requested address).", pair(), 12, nil},
		{"GCS", "[2026-11-30 10:11:12,345 W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.", pair(), 13, []string{"at 192.168.200.12:6379.", "firewall"}},
		{"GCS, older Ray", "2026-11-30 10:11:12,345 WARNING utils.py:1397 -- Unable to connect to GCS at 192.168.200.12:6379. Check that (1) Ray GCS with matching version started successfully at the specified address, and (2) there is no firewall setting preventing access.", pair(), 13, nil},
		{"blank address", "ValueError: Malformed address: :6379", pair(), 14, nil},
		{"wrong network", "INFO 11-30 10:11:12 [parallel_state.py:1823] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.1.230.180:43210 backend=nccl", pair(), 106, []string{"meet at 10.1.230.180", "192.168.200.12 (10.1.230.180)"}},
		{"wrong network, messages", "INFO [shm_broadcast.py:289] vLLM message queue communication handle: Handle(local_reader_ranks=[], buffer_handle=None, remote_subscribe_addr='tcp://10.0.0.7:35017', remote_addr_ipv6=False)", over("wlP9s9", "10.0.0.7"), 3, []string{"10.0.0.7"}},

		{"no Ray", `OCI runtime create failed: exec: "ray": executable file not found in $PATH: unknown`, pair(), 20, []string{"vllm:1 has no Ray"}},
		{"no Ray in a shell", "bash: line 1: ray: command not found", Evidence{}, 20, nil},
		{"no Ray in vLLM", "ValueError: Failed to import Ray: No module named 'ray'.Please install Ray with `pip install ray`.", pair(), 20, []string{"vllm:1 has no Ray"}},
		{"versions", "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.53.0\n    Python: 3.12.3\nThis process on node 192.168.200.13 was started with:\n    Ray: 2.60.0\n    Python: 3.11.2\n", pair(), 21, []string{"started with Ray 2.53.0 and Python 3.12.3", "has Ray 2.60.0 and Python 3.11.2"}},
		{"memory monitor", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 192.168.200.13, ID: fc2befb2) where the task (actor ID: f9cc, name=RayWorkerProc.__init__, pid=4331, memory used=2.22GB) was running was 113.76GB / 119.70GB (0.950345), which exceeds the memory usage threshold of 0.95.", pair(), 22, []string{"on 192.168.200.13 (10.1.230.181) at 113.76GB of 119.70GB", "RAY_memory_monitor_refresh_ms"}},
		{"memory monitor, cut off", "used memory 113.76GB / 119.70GB (0.950345)", pair(), 22, nil},
		{"memory monitor, raylet", "(raylet) node_manager.cc:3277: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8289f87b, IP: 192.168.200.12) over the last time period.", pair(), 22, []string{"on 192.168.200.12"}},
		{"session", "Session name session_2026-11-30_10-00-00_1_1 does not match persisted value session_2026-11-29_09-00-00_1_1. Perhaps there was an error connecting to Redis.", pair(), 24, []string{"older Ray"}},
		{"Ray's folder", "ValueError: Can't find a `node_ip_address.json` file from /tmp/ray/session_2026-11-30_10-00-00_1_1 for 60 seconds.", pair(), 25, nil},
		{"Ray's folder, 2.58", "RuntimeError: No node info found matching attributes: ''", pair(), 25, nil},
		{"driver without a GPU", "RuntimeError: driver node 192.168.200.12 is not included in a placement group [{'GPU': 1.0}].", pair(), 26, nil},
		{"stale address", "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag or `RAY_ADDRESS` environment variable.", pair(), 25, nil},
		{"no GPU here", "ValueError: Current node has no GPU available. current_node_resource={'CPU': 2.0}. vLLM engine cannot start without GPU.", pair(), 26, []string{"no free GPU"}},
		{"too few GPUs", "WARNING 11-30 10:11:12 [ray_utils.py:345] The number of required GPUs exceeds the total number of available GPUs in the placement group.", pair(), 28, nil},
		{"SIGBUS", "(raylet) A worker died: SIGBUS", pair(), 29, []string{"/dev/shm"}},
		{"bus error", "/bin/bash: line 1:  214 Bus error               (core dumped) vllm serve /model", pair(), 29, nil},
		{"small shm", "(raylet) WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available.\nray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", pair(), 29, nil},
		{"on the host", "bash: vllm: command not found", pair(), 31, nil},
		{"a rank died", "ERROR 11-30 10:11:12 [ray_executor_v2.py:464] RayWorkerProc rank=[1] died unexpectedly, shutting down executor.\nvllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.", pair(), 89, []string{"rank died"}},
		{"a raylet ended", "Some Ray subprocesses exited unexpectedly:\n  raylet [exit code=-9]\nRemaining processes will be killed.", pair(), 89, nil},
		{"a node died", "(raylet) The node with node id: 0f219779 and address: 192.168.200.13 and node name: 192.168.200.13 has been marked dead because the detector has missed too many heartbeats from it. This can happen when a \t(1) raylet crashes unexpectedly (OOM, preempted node, etc.) \n\t(2) raylet has lagging heartbeats due to slow network or busy workload.", pair(), 89, []string{"192.168.200.13 (10.1.230.181)"}},

		{"queue pair", "misc/ibvwrap.cc:291 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1", pair(), 34, []string{"GID index"}},
		{"queue pair, older NCCL", "spark-a:90:90 [0] misc/ibvwrap.cc:206 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110", pair(), 34, nil},
		{"GID moved", "spark-a:90:95 [0] transport/net_ib.cc:153 NCCL WARN NET/IB : rocep1s0f0:1 GID table changed", pair(), 35, nil},
		{"memlock", "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", pair(), 36, []string{"unlimited memlock"}},
		{"memlock by the kernel", "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", kernel("7.0.0-1019-nvidia"), 37, []string{"kho=off"}},
		{"memlock by the kernel's log", "Nov 30 10:00:00 spark-a kernel: Linux version 7.0.0-1031-nvidia (buildd@bos03) #31\nNCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory errno 12", pair(), 37, nil},
		{"sockets", "spark-a:90:95 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0", Evidence{}, 38, []string{"NCCL_NET=IB"}},
		{"sockets of a pair", "(RayWorkerProc pid=71, ip=192.168.200.13) spark-b:71:71 [0] NCCL INFO NET/Socket : Using [0]enp1s0f0np0:192.168.200.13<0>", pair(), 38, nil},
		{"no RDMA", "spark-a:90:95 [0] init.cc:480 NCCL WARN Error: network IB not found.", pair(), 38, nil},
		{"slow lanes", "[    3.1] mlx5_core 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:00.0 (capable of 126.024 Gb/s with 32.0 GT/s PCIe x4 link)", pair(), 39, nil},
		{"two lanes", "[    3.1] mlx5_core 0002:01:00.1: 63.012 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x2 link at 0002:00:00.0 (capable of 126.024 Gb/s with 32.0 GT/s PCIe x4 link)", pair(), 40, nil},
		{"MTU", "ping: local error: message too long, mtu=1500", pair(), 42, nil},
		{"GDR", "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument", pair(), 43, nil},
		{"NCCL missing", "OSError: libnccl.so.2: cannot open shared object file: No such file or directory", pair(), 44, nil},
		{"no kernels", "RuntimeError: CUDA error: no kernel image is available for execution on the device", pair(), 44, nil},
		{"PCIe", "Aug 26 06:38:10 spark-a kernel: pcieport 0000:00:00.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0", pair(), 46, nil},
		{"lock-up", "Aug 26 06:40:10 spark-a kernel: watchdog: BUG: soft lockup - CPU#7 stuck for 26s! [irq/90-aerdrv:412]", pair(), 46, nil},
		{"stalled copy", "rsync error: timeout in data send/receive (code 30) at io.c(200) [sender=3.2.7]", pair(), 47, nil},
	}
}

// serverRows are of GPU, memory, model, serving and host.
func serverRows() []rowTest {
	return []rowTest{
		{"memory figure", "ValueError: invalid literal for int() with base 10: '[N/A]'", pair(), 48, nil},
		{"memory figure, NVML", "pynvml.NVMLError_NotSupported: Not Supported", pair(), 48, nil},
		{"toolkit", `Error response from daemon: could not select device driver "" with capabilities: [[gpu]]`, pair(), 49, []string{"nvidia-ctk runtime configure"}},
		{"NVML", "Failed to initialize NVML: Unknown Error", pair(), 50, []string{"daemon-reload"}},
		{"803", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination", pair(), 51, []string{"compatibility library"}},
		{"architecture", "exec /usr/local/bin/vllm: exec format error", pair(), 53, []string{"vllm:1 is built for another processor"}},
		{"architecture, manifest", "docker: no matching manifest for linux/arm64/v8 in the manifest list entries.", pair(), 53, nil},
		{"assembler", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", pair(), 54, []string{"sm_121a"}},
		{"wheel", "ERROR: No matching distribution found for flash-attn==2.8.3", pair(), 55, nil},
		{"Xid", "Nov 30 10:11:12 spark-a kernel: NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", pair(), 56, []string{"Xid 79"}},
		{"half the memory", "ValueError: Free memory on device cuda:0 (60.10/62.20 GiB) on startup is less than desired GPU memory utilization (0.98, 60.95 GiB).", memory(121, 110, 100), 105, []string{"62.20"}},

		{"page cache", "ValueError: Free memory on device cuda:0 (8.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.", memory(121, 118, 8), 57, []string{"wants 109.52 GiB", "sees 8.25 of 121.69 GiB", "110 GiB of the host's memory are page cache", "drop_caches"}},
		{"page cache, vLLM 0.11", "ValueError: Free memory on device (8.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.", Evidence{}, 57, []string{"sees 8.25 of 121.69 GiB", "Page cache counts as used"}},
		{"page cache, cut off", "ValueError: Free memory on device cuda:0 (8.25/121.69 GiB) on startup is less than desired", Evidence{}, 57, nil},
		{"page cache, paraphrased", "ValueError: Free memory on device … is less than desired GPU memory utilization", Evidence{}, 57, nil},
		{"loading slows", "Loading safetensors checkpoint shards:  13% Completed | 5/39 [00:01<00:07,  4.51it/s]\nLoading safetensors checkpoint shards:  82% Completed | 32/39 [03:01<00:35,  5.10s/it]\n/bin/bash: line 3:    71 Killed                  vllm serve /model", pair(), 58, nil},
		{"out of memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.02 GiB is free.", pair(), 59, []string{"share one memory"}},
		{"OOM killer", "Nov 30 10:11:12 spark-b kernel: Out of memory: Killed process 8124 (VLLM::Worker_TP) total-vm:301212kB, anon-rss:1812kB", pair(), 59, []string{"VLLM::Worker_TP"}},
		{"driver's memory", "Nov 30 10:11:12 spark-b kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359\nRayWorkerProc rank=[1] died unexpectedly, shutting down executor.", pair(), 59, nil},
		{"container killed", "nothing to see here", func() Evidence {
			e := pair()
			e.Nodes["10.1.230.181"] = Node{Container: &Container{OOMKilled: true}}
			return e
		}(), 59, []string{"The kernel killed"}},
		{"exit code 137", "(EngineCore_DP0 pid=71) ERROR rank 1: worker exited with code 137", pair(), 59, nil},
		{"no room for the cache", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", pair(), 60, nil},
		{"too long for the cache", "ValueError: To serve at least one request with the models's max seq len (262144), (24.0 GiB KV cache is needed, which is larger than the available KV cache memory (9.05 GiB). Based on the available memory, the estimated maximum model length is 98304.", pair(), 60, []string{"262144 tokens needs 24.0 GiB", "9.05 GiB"}},
		{"profile", "AssertionError: Error in memory profiling. Initial free memory 22.02 GiB, current free memory 22.11 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.", pair(), 60, nil},
		{"never reached", "ValueError: Free memory on device cuda:0 (101.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.87, 105.87 GiB).", memory(121, 102, 101), 61, []string{"Lower --gpu-memory-utilization"}},
		{"a leak", "ValueError: Free memory on device cuda:0 (90.1/121.69 GiB) on startup is less than desired GPU memory utilization (0.8, 97.35 GiB)\nValueError: Free memory on device cuda:0 (71.2/121.69 GiB) on startup is less than desired GPU memory utilization (0.8, 97.35 GiB)\nValueError: Free memory on device cuda:0 (40.9/121.69 GiB) on startup is less than desired GPU memory utilization (0.8, 97.35 GiB)", pair(), 62, []string{"40.9 GiB after 3", "reboot"}},
		{"memory comes late", "ValueError: Free memory on device cuda:0 (41.3/121.69 GiB) on startup is less than desired GPU memory utilization (0.8, 97.35 GiB)", memory(121, 118, 112), 63, []string{"112 GiB are free", "Start again"}},
		{"memory comes late, by the log", "INFO 11-30 10:11:12 [launcher.py:110] Received SIGTERM\nINFO 11-30 10:11:40 [api_server.py:1] vLLM API server version 0.32.0\nERROR 11-30 10:12:12 [core.py:9] ValueError: Free memory on device cuda:0 (41.3/121.69 GiB) on startup is less than desired GPU memory utilization (0.8, 97.35 GiB)", pair(), 63, nil},
		{"earlyoom", `Nov 30 10:11:12 spark-b earlyoom[812]: sending SIGTERM to process 8124 uid 0 "VLLM::Worker_TP": badness 1201, VmRSS 90112 MiB`, pair(), 64, []string{"earlyoom"}},
		{"fastsafetensors", "INFO 11-30 10:11:12 [fastsafetensors.py:31] loading by fastsafetensors\ntorch.OutOfMemoryError: CUDA out of memory.", pair(), 65, []string{"plain loader"}},

		{"disk", "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/models--Qwen--Qwen3.5/blobs/ab.incomplete'", pair(), 67, nil},
		{"weights", "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", pair(), 69, []string{"(MetadataIncompleteBuffer)"}},
		{"weights, newer", "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered", pair(), 69, nil},
		{"a shard", "FileNotFoundError: [Errno 2] No such file or directory: '/root/.cache/huggingface/hub/models--Qwen--Qwen3.5/snapshots/ab12/model-00003-of-00039.safetensors'", pair(), 69, []string{"model-00003-of-00039.safetensors"}},
		{"gated", "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url https://huggingface.co/meta-llama/x", pair(), 73, []string{"licence"}},
		{"rate", "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/Qwen/Qwen3.5/tree/main", pair(), 74, nil},
		{"download", "model-00012-of-00039.safetensors:  99%|█████████▉| 4.95G/5.00G [10:00<00:06, 8.31MB/s]\rmodel-00012-of-00039.safetensors:  99%|█████████▉| 4.95G/5.00G [12:30<00:06, 8.31MB/s]", pair(), 75, []string{"HF_HUB_DISABLE_XET=1"}},
		{"owner", "PermissionError: [Errno 13] Permission denied: '/home/user/.cache/huggingface/hub/models--Qwen--Qwen3.5/refs/main'", pair(), 76, nil},
		{"owner, rsync", `rsync: [receiver] mkstemp "/home/user/.cache/huggingface/hub/.model.gGx" failed: Permission denied (13)`, pair(), 76, nil},
		{"route of a copy", "ssh: connect to host 192.168.200.13 port 22: Connection timed out", pair(), 77, []string{"192.168.200.13"}},
		{"broken build", "ImportError: /usr/local/lib/python3.12/dist-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", pair(), 79, nil},
		{"broken build, import", "ImportError: cannot import name 'AutoVideoProcessor' from 'transformers' (/usr/local/lib/python3.12/dist-packages/transformers/__init__.py)", pair(), 79, nil},
		{"architecture of the model", "ValueError: Model architectures ['Qwen3_5MoeForConditionalGeneration'] are not supported for now. Supported architectures: dict_keys(['A'])", pair(), 81, []string{"'Qwen3_5MoeForConditionalGeneration'", "newer vLLM"}},
		{"model type", "ValueError: The checkpoint you are trying to load has model type `qwen3_5_moe` but Transformers does not recognize this architecture.", pair(), 81, []string{"model type qwen3_5_moe"}},
		{"slow loading", "Loading safetensors checkpoint shards:  13% Completed | 5/39 [03:26<23:20, 41.2s/it]\nLoading safetensors checkpoint shards:  15% Completed | 6/39 [04:07<22:39, 41.2s/it]", pair(), 82, nil},

		{"flag", "vllm serve: error: unrecognized arguments: --disable-log-requests", pair(), 83, []string{"does not know --disable-log-requests.", "--help=all"}},
		{"empty answer", `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning":null,"tool_calls":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"total_tokens":421,"completion_tokens":412}}`, pair(), 84, nil},
		{"ready limit", "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).", pair(), 85, []string{"VLLM_ENGINE_READY_TIMEOUT_S"}},
		{"ready limit by the clock", "RuntimeError: Engine core initialization failed. See root cause above.", Evidence{WaitedSeconds: 600}, 85, []string{"VLLM_ENGINE_READY_TIMEOUT_S"}},
		{"ready limit by the log", "INFO 11-30 10:00:00 [api_server.py:1] vLLM API server version 0.15.1\nERROR 11-30 10:10:02 [core.py:9] RuntimeError: Engine core initialization failed. See root cause above.", Evidence{}, 85, nil},
		{"RPC", "TimeoutError: RPC call to sample_tokens timed out.", pair(), 86, []string{"sample_tokens"}},
		{"meeting point", "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", pair(), 88, []string{"1 of 2 ranks"}},
		{"port", "OSError: [Errno 98] Address already in use", pair(), 92, []string{"port 8000"}},
		{"port, uvicorn", "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", pair(), 92, nil},
		{"key", "INFO 11-30 10:11:12 [utils.py:233] non-default args: {'model_tag': '/model', 'api_key': ['correct-horse-battery'], 'tensor_parallel_size': 2}", pair(), 94, nil},
		{"flags", "vllm serve: error: argument --enforce-eager: not allowed with argument --compilation-config", pair(), 95, nil},
		{"validation", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, quantization fp8 and modelopt are incompatible [type=value_error]", pair(), 95, nil},

		{"validation of a model", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, The checkpoint you are trying to load has model type `glm5` but Transformers does not recognize this architecture.", pair(), 81, nil},
		{"a second Ray", "ConnectionError: Ray is trying to start at 192.168.200.12:6379, but is already running at 192.168.200.12:6379. Please specify a different port using the `--port` flag of `ray start` command.", pair(), 24, nil},
		{"the GCS's port", "[2026-11-30 10:11:12,345 C 1 1] (gcs_server) gcs_server.cc:312: Failed to start GCS server on 0.0.0.0:6379 Address already in use", pair(), 92, nil},
		{"host key", "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.", pair(), 96, nil},
		{"passphrase", "Enter passphrase for key '/home/user/.ssh/id_ed25519': ", pair(), 97, nil},
		{"ssh folder", "bash: /home/user/.ssh/authorized_keys: No such file or directory", pair(), 98, nil},
		{"docker socket", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.47/containers/json\": dial unix /var/run/docker.sock: connect: permission denied", pair(), 99, nil},
		{"sudo", "sudo: a password is required", pair(), 100, nil},
		{"clock", "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2025-01-01T00:01:12Z is before 2026-10-01T00:00:00Z", pair(), 101, nil},
		{"home", "bash: line 1: cd: /home/alice/models: No such file or directory", pair(), 102, nil},
		{"DOE", "[    1.2] pci 000f:01:00.0: DOE: [2c8] ABORT timed out", pair(), 103, nil},
		{"panic", "[ 4121.2] Kernel panic - not syncing: Asynchronous SError Interrupt", pair(), 103, nil},
		{"wrapped by a terminal", "(APIServer pid=25) torch.distributed.DistStoreError: Timed out after 601 seconds waiting for cli\nents. 1/2 clients joined.", pair(), 88, nil},
		{"wrapped between words", "(EngineCore_DP0 pid=25) ERROR 11-30 10:11:12 [core.py:842] RuntimeError: NCCL error while CUDA out\nof memory. Tried to allocate 2.00 GiB.", pair(), 59, nil},
		{"wrapped in an address", "(autoscaler +12s) Error: No available node types can fulfill resource request {'node:192.168.\n200.12': 0.001, 'GPU': 1.0}.", broken(), 1, []string{"on the node 192.168.200.12"}},
		{"of no known kind", "ERROR 11-30 10:11:12 [core.py:842] NotImplementedError: Speculative decoding with this drafter is not there yet.\nERROR 11-30 10:11:12 [core.py:842] EngineCore failed to start.", pair(), 0, []string{"NotImplementedError: Speculative decoding with this drafter"}},
		{"two ranks on a GPU", "spark-a:90:95 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device f01000\nRuntimeError: NCCL error: invalid usage", pair(), 0, []string{"one GPU"}},
		{"graphs", graphHang(), pair(), 45, []string{"--enforce-eager"}},
		{"object store", "[2026-11-30 10:11:12,345 I 1 1] (raylet) store_runner.cc:50: Allowing the Plasma store to use up to 35.92GB of memory.\ntorch.OutOfMemoryError: CUDA out of memory.", pair(), 23, nil},
	}
}

func graphHang() string {
	log := "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  20%|██        | 2/10 [00:01<00:05,  1.51it/s]\n"
	for range 8 {
		log += "(EngineCore_DP0 pid=71) INFO 11-30 10:12:12 [shm_broadcast.py:548] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).\n"
	}
	return log
}
