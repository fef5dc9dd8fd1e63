package diagnose

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	gib        = 1 << 30
	dropCache  = "Give page cache back: `sync; echo 3 | sudo tee /proc/sys/vm/drop_caches` on that host, then start again."
	needLess   = "Lower --gpu-memory-utilization or --max-model-len, give page cache back before the start, or spread the model over more nodes."
	startLater = "Start again. A minute or more may pass after a stop before the memory is back."
	lowerUse   = "Lower --gpu-memory-utilization (0.80 to 0.83 is what a DGX Spark reaches), or --max-model-len."
)

// memoryRules know GB10's one memory for host and GPU.
func memoryRules() []Rule {
	return []Rule{
		{
			ID: "free-memory", Row: 57, Kind: Root,
			Any:     []string{"on startup is less than desired", "is less than desired GPU memory utilization"},
			Detail:  `Free memory on device ?(\S*?) ?\(([\d.]+)/([\d.]+) GiB\) on startup is less than desired GPU memory utilization \(([\d.]+), ([\d.]+) GiB`,
			Message: "Free memory on device cuda:0 (8.25/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB)",
			Cause:   "CUDA sees less free memory than vLLM wants. Page cache counts as used on this machine, and so does every other process.",
			Fix:     dropCache + " " + lowerUse + " Stop what else uses the GPU.",
			Refine:  freeMemory,
		},
		{
			ID: "out-of-memory", Row: 59, Kind: Root,
			Any:     []string{"torch.OutOfMemoryError", "OutOfMemoryError: CUDA", "CUDA out of memory", "CUDA error: out of memory", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY"},
			Message: "torch.OutOfMemoryError: CUDA out of memory",
			Cause:   "Memory ran out: the weights of one node, the KV cache and the page cache of the checkpoint share one memory.",
			Fix:     needLess,
			Refine:  outOfMemory,
		},
		{
			ID: "oom-killer", Row: 59, Kind: Root,
			Any:     []string{"Out of memory: Killed process", "oom-kill:constraint", "invoked oom-killer", "Memory cgroup out of memory"},
			Pattern: `Killed process \d+ \(([^)]+)\)|task=([^,\s]+),pid|invoked oom-killer|Memory cgroup out of memory`,
			Message: "kernel: Out of memory: Killed process 8124 (VLLM::Worker_TP)",
			Cause:   "The kernel killed a process for memory: the weights of one node, the KV cache and the page cache of the checkpoint share one memory.",
			Fix:     needLess,
			Refine: func(hit Hit, evidence Evidence) Answer {
				name := hit.Match[1] + hit.Match[2]
				if name == "" {
					return Answer{}
				}
				return Answer{Cause: fmt.Sprintf("The kernel killed %s for memory: the weights of one node, the KV cache and the page cache of the checkpoint share one memory.%s", name, stateOfMemory(evidence, hit.Host))}
			},
		},
		{
			ID: "driver-memory", Row: 59, Kind: Contributor,
			Any:      []string{"NV_ERR_NO_MEMORY"},
			Explains: []string{"rank-died", "engine-dead", "killed", "oom-killer", "stuck", "sample-timeout"},
			Message:  "NVRM: … Out of memory [NV_ERR_NO_MEMORY] (0x00000051)",
			Cause:    "The driver could not get memory: the weights of one node, the KV cache and the page cache of the checkpoint share one memory.",
			Fix:      "Lower --gpu-memory-utilization or --max-model-len, or give page cache back before the start. A few of these lines come on good starts too.",
		},
		{
			ID: "kv-cache", Row: 60, Kind: Root,
			Any:     []string{"No available memory for the cache blocks", "larger than the available KV cache memory", "Error in memory profiling", "Available KV cache memory: -"},
			Detail:  `(Error in memory profiling)|max seq len \((\d+)\), \(?([\d.]+) GiB KV cache is needed.*?\(?([\d.]+) GiB\)?`,
			Message: "No available memory for the cache blocks; … KV cache is needed, which is larger than the available KV cache memory; Error in memory profiling",
			Cause:   "What is left for the KV cache after the weights and vLLM's own profile run is too small or negative.",
			Fix:     "Raise --gpu-memory-utilization if memory is free, lower --max-model-len, or set --kv-cache-memory-bytes, which skips the profile; keep the compile caches mounted.",
			Refine:  kvCache,
		},
		{
			ID: "user-killer", Row: 64, Kind: Root,
			Any:     []string{"earlyoom", "systemd-oomd", "dgx-anti-oom"},
			Pattern: `earlyoom.*(?:sending SIG(?:TERM|KILL)|low memory!)|systemd-oomd.*[Kk]illed|dgx-anti-oom.*(?:SIG|[Kk]ill)`,
			Message: `earlyoom[812]: sending SIGTERM to process 8124 "VLLM::Worker_TP"`,
			Cause:   "A watchdog for memory in user space (earlyoom, systemd-oomd) killed the process; the kernel's log says nothing of it.",
			Fix:     "Exclude vLLM and Ray from it or turn it off, and lower --gpu-memory-utilization so that 2 to 4 GiB stay free.",
		},
		{
			ID: "killed", Row: 59, Kind: Mechanism,
			Any:     []string{"exit code 137", "exit_code=137", "exitcode=137", "exit code: -9", "exited with code 137", "signal 9 (SIGKILL)", "OOMKilled", "SIGKILL (signal 9)", "Killed                  "},
			Unless:  []string{"OOMKilled\": false", "OOMKilled\":false", "OOMKilled=false", "OOMKilled: false"},
			Message: "exited with code 137; OOMKilled",
			Cause:   "The process was killed from outside, most likely by the kernel for memory: the weights, the KV cache and page cache share one memory.",
			Fix:     "Look at `dmesg` and `journalctl -u earlyoom` of that host. If it was memory, lower --gpu-memory-utilization or --max-model-len.",
		},
	}
}

// freeMemory tells page cache, which CUDA counts as used, from a wish that is too high, from memory
// that came back late, and from a GPU that sees half of the memory.
func freeMemory(hit Hit, evidence Evidence) Answer {
	if hit.Match[5] == "" {
		return Answer{}
	}
	free, total, wanted := number(hit.Match[2]), number(hit.Match[3]), number(hit.Match[4])
	cause := fmt.Sprintf("vLLM wants %s GiB (gpu_memory_utilization %s) and CUDA sees %s of %s GiB free.", hit.Match[5], hit.Match[4], hit.Match[2], hit.Match[3])
	memory := evidence.memory(hit.Host)
	cache := memory.Available - memory.Free
	switch {
	case total > 50 && total < 70 && memory.Total > 100*gib:
		return Answer{
			Row:   105,
			Cause: fmt.Sprintf("CUDA sees %s GiB of the %d GiB that this node has: a setting of the NVIDIA module halves it.", hit.Match[3], memory.Total/gib),
			Fix:   "Remove the override in /etc/modprobe.d/zz-nvidia-drm-override.conf, and reboot.",
		}
	case memory.Total > 0 && float64(memory.Free)/gib > free+10 && float64(memory.Free)/gib > wanted*total:
		return Answer{
			Row:   63,
			Cause: cause + fmt.Sprintf(" Now %d GiB are free: the memory of a server that was stopped came back late.", memory.Free/gib),
			Fix:   startLater,
		}
	case memory.Total == 0 && hit.Restarted:
		return Answer{
			Row:   63,
			Cause: cause + " The server before it was stopped just then, and its memory comes back late.",
			Fix:   startLater,
		}
	case memory.Total > 0 && cache > 4*gib:
		return Answer{Cause: cause + fmt.Sprintf(" %d GiB of the host's memory are page cache, which CUDA counts as used.", cache/gib), Fix: dropCache}
	case total > 0 && free/total > 0.8:
		return Answer{
			Row:   61,
			Cause: cause + " So much is never free on a DGX Spark, whatever is stopped.",
			Fix:   "Lower --gpu-memory-utilization: 0.80 to 0.83 is what a DGX Spark reaches.",
			Here:  "Lower --gpu-memory-utilization in args: 0.80 to 0.83 is what a DGX Spark reaches.",
		}
	}
	return Answer{
		Cause: cause + " Page cache counts as used on this machine, and so does every other process.",
		Fix:   dropCache + " " + lowerUse + " Stop what else uses the GPU.",
	}
}

// number of a text that a pattern took for one.
func number(text string) float64 {
	value, err := strconv.ParseFloat(strings.TrimRight(text, "."), 64)
	if err != nil {
		return 0
	}
	return value
}

func outOfMemory(hit Hit, evidence Evidence) Answer {
	if hit.FastLoader {
		return Answer{
			Row:   65,
			Cause: "Memory ran out while fastsafetensors loaded the weights: it needs headroom, and fails above about 0.8 of the memory.",
			Fix:   "Use the plain loader (leave --load-format out).",
		}
	}
	return Answer{Cause: "Memory ran out: the weights of one node, the KV cache and the page cache of the checkpoint share one memory." + stateOfMemory(evidence, hit.Host)}
}

// stateOfMemory is a sentence with a space before it, such as " The host has 121 GiB, of which 3 GiB are free now.";
// empty if nothing is known.
func stateOfMemory(evidence Evidence, host string) string {
	memory := evidence.memory(host)
	if memory.Total == 0 {
		return ""
	}
	return fmt.Sprintf(" The host has %d GiB, of which %d GiB are free now.", memory.Total/gib, memory.Free/gib)
}

func kvCache(hit Hit, _ Evidence) Answer {
	switch {
	case hit.Match[1] != "":
		return Answer{
			Cause: "Free memory grew while vLLM measured it: another process, or page cache, gave memory back just then.",
			Fix:   "Start again when nothing else starts or stops on that host, or set --kv-cache-memory-bytes, which skips the profile.",
		}
	case hit.Match[4] != "":
		return Answer{
			Cause: fmt.Sprintf("One request of %s tokens needs %s GiB of KV cache, and %s GiB are left for it.", hit.Match[2], hit.Match[3], hit.Match[4]),
			Fix:   "Lower --max-model-len (the message names what would fit), or raise --gpu-memory-utilization if memory is free.",
		}
	}
	return Answer{}
}
