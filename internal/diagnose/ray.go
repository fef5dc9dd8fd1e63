package diagnose

import (
	"fmt"
	"regexp"
)

const (
	oneImage      = "Run one image, by its id, on all nodes and for the server; install nothing at the start."
	startTogether = "Look at the log of that rank and at its node (`docker logs`, memory, `dmesg`); all ranks must be started again together."
	capStore      = "Cap it: `ray start --object-store-memory=1073741824 --num-cpus=2` on every node."
	applyRanks    = "Look at the Ray container of each node (`docker logs`), memory and the kernel's log (`dmesg`) for why; apply again starts all ranks together."
)

// rayRules know Ray's processes and versions.
func rayRules() []Rule {
	return []Rule{
		{
			ID: "no-ray", Row: 20, Kind: Root, Fatal: true,
			Any:     []string{"ray: command not found", "ray: not found", `"ray": executable file not found`, "No module named 'ray'", "Failed to import Ray", "exec: ray: not found"},
			Message: "ray: command not found; No module named 'ray'",
			Cause:   "The image has no Ray: NGC's vLLM images lost it with 26.04, vLLM's own with 0.18.",
			Fix:     "Use an image that contains Ray, or vLLM's own multi-node mode. Do not install it at the start: each node could get another version.",
			Refine: func(_ Hit, evidence Evidence) Answer {
				if evidence.Image == "" {
					return Answer{}
				}
				return Answer{Cause: "The image " + evidence.Image + " has no Ray: NGC's vLLM images lost it with 26.04, vLLM's own with 0.18."}
			},
		},
		{
			ID: "versions", Row: 21, Kind: Root, Fatal: true, Follow: 8,
			Any:     []string{"Version mismatch: The cluster was started with"},
			Message: "Version mismatch: The cluster was started with: Ray: 2.53.0 Python: 3.12.3",
			Cause:   "The process and the cluster have different versions of Ray or Python.",
			Fix:     oneImage,
			Refine:  versions,
		},
		{
			ID: "memory-monitor", Row: 22, Kind: Root, Fatal: true, Follow: 3,
			Any: []string{
				"killed due to the node running low on memory", "were killed due to the node running low on memory",
				"killed due to memory pressure (OOM)", "Memory on the node (IP:", "NODE_OUT_OF_MEMORY", "exceeds the memory usage threshold of", "GB / ",
			},
			Pattern: `running low on memory|memory pressure \(OOM\)|Memory on the node|NODE_OUT_OF_MEMORY|memory usage threshold|[\d.]+GB / [\d.]+GB \(0\.9\d*\)`,
			Message: "Memory on the node (IP: …) … was 113.76GB / 119.70GB (0.950345), which exceeds the memory usage threshold of 0.95",
			Cause:   "Ray's memory monitor killed a rank: it counts unified memory, which holds the weights, as the host's.",
			Fix:     "Set RAY_memory_monitor_refresh_ms=0 for `ray start` on every node, not on the head alone.",
			Here:    "RAY_memory_monitor_refresh_ms must be 0 in the Ray container of every node. The provider sets that unless env overrides it: remove it there and apply the cluster again.",
			Refine:  memoryMonitor,
		},
		{
			ID: "object-store", Row: 23, Kind: Contributor,
			Any:      []string{"Allowing the Plasma store to use up to"},
			Pattern:  `Allowing the Plasma store to use up to ([2-9]\d(?:\.\d+)?|\d{3,}(?:\.\d+)?)\s*GB`,
			Explains: []string{"free-memory", "out-of-memory", "kv-cache", "memory-monitor", "oom-killer"},
			Message:  "Allowing the Plasma store to use up to 35.9GB of memory",
			Cause:    "Ray's object store may take 30 % of the memory, which the GPU shares.",
			Fix:      capStore,
		},
		{
			ID: "session", Row: 24, Kind: Root, Fatal: true,
			Any:     []string{"does not match persisted value", "but is already running at"},
			Message: "Session name … does not match persisted value …; Ray is trying to start at …, but is already running at …",
			Cause:   "The Ray node joined another cluster than the one that started here: an older Ray holds the GCS port on this host.",
			Fix:     "Stop the other Ray on the head (`docker ps`, `ss -ltnp`), or give the cluster another port.",
		},
		{
			ID: "ray-folder", Row: 25, Kind: Root, Fatal: true,
			Any:     []string{"node_ip_address.json", "No node info found matching attributes"},
			Pattern: "Can't find a `?node_ip_address\\.json|No node info found matching attributes",
			Message: "Can't find a `node_ip_address.json` file; No node info found matching attributes",
			Cause:   "The server does not see the temporary folder of the Ray node on its host, or Ray knows that node by another address than the server does.",
			Fix:     "The server and the Ray container must share one volume at /tmp/ray, and one VLLM_HOST_IP that is Ray's --node-ip-address; or run `vllm serve` inside the Ray container.",
			Here:    "The server and the Ray container must share one volume at /tmp/ray: apply the deployment again.",
		},
		{
			ID: "stale-ray", Row: 25, Kind: Root,
			Any:     []string{"Could not find any running Ray instance", "ray_current_cluster", "across Ray sessions"},
			Pattern: `Could not find any running Ray instance|(?:No such file|not exist|stale).*ray_current_cluster|across Ray sessions`,
			Message: "ConnectionError: Could not find any running Ray instance",
			Cause:   "The driver looks for a cluster that is not there: a stale RAY_ADDRESS or /tmp/ray/ray_current_cluster, or a Ray that was restarted under it.",
			Fix:     "Give the address explicitly (RAY_ADDRESS=HEAD:6379), with a fresh /tmp/ray, and restart the server after Ray.",
			Here:    applyAgain,
		},
		{
			ID: "other-ray", Row: 25, Kind: Condition,
			Any:     []string{"Connecting to existing Ray cluster at address:"},
			Pattern: `Connecting to existing Ray cluster at address: \[?([0-9a-fA-F.:]+?)\]?:(\d+)`,
			Message: "Connecting to existing Ray cluster at address: <an address of no node>",
			Cause:   "The server joined another Ray cluster than this one.",
			Fix:     "Give the address explicitly (RAY_ADDRESS=HEAD:6379), with a fresh /tmp/ray.",
			Here:    applyAgain,
			Refine: func(hit Hit, evidence Evidence) Answer {
				_, known := evidence.isIdentity(hit.Match[1])
				if !known || evidence.hostOf(hit.Match[1]) != "" || hit.Match[1] == "127.0.0.1" {
					return declined()
				}
				return Answer{Cause: fmt.Sprintf("The server joined a Ray cluster at %s, which no node of this one has (%s).", hit.Match[1], evidence.identities())}
			},
		},
		{
			ID: "no-gpu-here", Row: 26, Kind: Root, Fatal: true,
			Any:     []string{"Current node has no GPU available", "Ray does not allocate any GPUs on the driver node", "is not included in a placement group"},
			Message: "Current node has no GPU available",
			Cause:   "Ray has no free GPU on the node where the server runs: it sees none there, or another placement group holds it.",
			Fix:     "Run the server on the head, where a GPU is. Check it in the Ray container (`nvidia-smi -L`) and in `ray status`; stop the other server.",
			Here:    "Check the GPU in the head's Ray container (`nvidia-smi -L`); apply the cluster again if it is gone, or stop the other server.",
		},
		{
			ID: "missing-worker", Row: 28, Kind: Root,
			Any:     []string{"exceeds the total number of available GPUs", "exceeds the total number of GPUs"},
			Until:   []string{"distributed_init_method=", "Starting to load model"},
			Message: "The number of required GPUs exceeds the total number of available GPUs in the placement group",
			Cause:   "Ray has fewer GPUs than vLLM asks for: a worker has not joined. Workers that all start at once can miss each other.",
			Fix:     "`ray status` shows who is there. Start the head first and the workers then, with retries.",
			Here:    "Apply the cluster again: it starts the head first and waits for every worker.",
		},
		{
			ID: "without-ray", Kind: Root,
			Any:     []string{"is larger than the number of available GPUs ("},
			Pattern: `World size \((\d+)\) is larger than the number of available GPUs \((\d+)\)`,
			Message: "World size (2) is larger than the number of available GPUs (1) in this node",
			Cause:   "vLLM was asked for more GPUs than this node has, without a backend that reaches other nodes.",
			Fix:     "Add --distributed-executor-backend ray (with Ray running on all nodes), or --nnodes, --node-rank and --master-addr for vLLM's own multi-node mode.",
		},
		{
			ID: "shm-too-small", Row: 29, Kind: Contributor,
			Any:      []string{"SHMEM allocation limit is set to the default of 64MB", "instead of /dev/shm because /dev/shm has only"},
			Explains: []string{"bus-error", "rank-died", "engine-dead", "nccl"},
			Message:  "The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available",
			Cause:    "The container's /dev/shm is Docker's default of 64 MiB, too small for Ray and NCCL.",
			Fix:      "Run it with --ipc host, or with --shm-size of 10 GiB or more.",
			Here:     "Apply the cluster again, which gives it 10 GiB.",
		},
		{
			ID: "bus-error", Row: 29, Kind: Root, Fatal: true,
			Any:     []string{"SIGBUS", "Bus error"},
			Unless:  []string{"SIGSEGV or SIGBUS"},
			Message: "Bus error (core dumped); SIGBUS",
			Cause:   "A process wrote beyond /dev/shm: Docker's default of 64 MiB is too small for Ray and NCCL.",
			Fix:     "Run the container with --ipc host, or with --shm-size of 10 GiB or more.",
			Here:    "The Ray container needs a shared memory of 10 GiB: apply the cluster again, which sets it.",
		},
		{
			ID: "outside-container", Row: 31, Kind: Root,
			Any:     []string{"vllm: command not found", "vllm: not found", `"vllm": executable file not found`},
			Message: "vllm: command not found",
			Cause:   "The command ran outside of the container, or in one without vLLM.",
			Fix:     "Run it inside: `docker exec <container> vllm serve …`.",
		},
		{
			ID: "slow-workers", Kind: Mechanism,
			Any:     []string{"have not registered within the timeout", "Timed out waiting for metrics_agent_port", "node timed out during startup"},
			Message: "Some workers of the worker process have not registered within the timeout",
			Cause:   "Ray's own processes did not come up in time: the node is overloaded, or its Python starts from a slow disk.",
			Fix:     "Start again when the node is idle; start Ray with few CPUs (--num-cpus=2) and RAY_num_prestart_python_workers=0.",
			Here:    applyAgain,
		},
		{
			ID: "ray-token", Kind: Root,
			Any:     []string{"InvalidAuthToken", "RAY_AUTH_TOKEN", "Token authentication is enabled but"},
			Pattern: `InvalidAuthToken|AuthenticationError|[Tt]oken authentication is enabled but`,
			Message: "AuthenticationError: RPC error: InvalidAuthToken",
			Cause:   "Ray's token authentication is on, and this process has no token or another one.",
			Fix:     "Give every container of the cluster one RAY_AUTH_TOKEN, or turn it off with RAY_AUTH_MODE=disabled on all.",
		},
		{
			ID: "rank-died", Row: 89, Kind: Mechanism,
			Any: []string{
				"ActorDiedError", "ActorUnavailableError", "ode has died", "died unexpectedly", "NodeDiedError", "Raylet is terminated",
				"Worker exit type: SYSTEM_ERROR", "has been marked dead", "mistakenly been marked as dead", "Worker failed with error",
				"Some Ray subprocesses exited unexpectedly",
			},
			Pattern: `ActorDiedError|ActorUnavailableError|[Nn]ode has died|died unexpectedly|NodeDiedError|Raylet is terminated|Worker exit type: SYSTEM_ERROR|(?:address: (\S+) .*)?marked (?:as )?dead|Worker failed with error|Ray subprocesses exited`,
			Message: "ActorDiedError; RayWorkerProc rank=[1] died unexpectedly; … has been marked dead",
			Cause:   "A rank died, and vLLM cannot go on without it. The head may keep its port open and answer nothing.",
			Fix:     startTogether, Here: applyRanks,
			Refine: func(hit Hit, evidence Evidence) Answer {
				if hit.Match[1] == "" {
					return Answer{}
				}
				return Answer{Cause: "Ray lost the node " + evidence.named(hit.Match[1]) + ", and vLLM cannot go on without its rank: the node or its Ray ended, or the network to it did."}
			},
		},
	}
}

// versions reads both blocks of Ray's message: "Ray: 2.53.0", "Python: 3.11.2".
func versions(hit Hit, _ Evidence) Answer {
	found := regexp.MustCompile(`(Ray|Python): (\d\S*)`).FindAllStringSubmatch(hit.Text, 4)
	if len(found) != 4 {
		return Answer{}
	}
	return Answer{Cause: fmt.Sprintf("The cluster was started with Ray %s and Python %s, and this process has Ray %s and Python %s.",
		found[0][2], found[1][2], found[2][2], found[3][2])}
}

func memoryMonitor(hit Hit, evidence Evidence) Answer {
	where, load := "", ""
	if at := regexp.MustCompile(`IP: ([0-9a-fA-F.:]*[0-9a-fA-F])`).FindStringSubmatch(hit.Text); at != nil {
		where = " on " + evidence.named(at[1])
	}
	if at := regexp.MustCompile(`([\d.]+GB) / ([\d.]+GB) \([\d.]+\)`).FindStringSubmatch(hit.Text); at != nil {
		load = fmt.Sprintf(" at %s of %s", at[1], at[2])
	}
	return Answer{Cause: fmt.Sprintf("Ray's memory monitor killed a rank%s%s: it counts unified memory, which holds the weights, as the host's.", where, load)}
}
