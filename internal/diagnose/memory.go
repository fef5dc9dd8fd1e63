package diagnose

import "fmt"

const gib = 1 << 30

// memoryRules know GB10's one memory for host and GPU.
func memoryRules() []rule {
	return []rule{
		{57, `Free memory on device (\S+) \(([\d.]+)/([\d.]+) GiB\) on startup is less than desired GPU memory utilization \(([\d.]+), ([\d.]+) GiB\)`, false, pageCache},
		{59, `NV_ERR_NO_MEMORY|torch\.OutOfMemoryError|CUDA out of memory|CUDA error: out of memory`, false,
			func(_ []string, evidence Evidence) (string, string) { return outOfMemory(evidence) }},
	}
}

// pageCache tells cache, which CUDA counts as used, from a wish that is too high.
func pageCache(match []string, evidence Evidence) (string, string) {
	cause := fmt.Sprintf("vLLM wants %s GiB (gpu_memory_utilization %s) and CUDA sees %s of %s GiB free.", match[5], match[4], match[2], match[3])
	if cache := evidence.Memory.Available - evidence.Memory.Free; evidence.Memory.Total > 0 && cache > 4*gib {
		return cause + fmt.Sprintf(" %d GiB of the host's memory are page cache, which CUDA counts as used.", cache/gib),
			"Give the cache back: `sync; echo 3 | sudo tee /proc/sys/vm/drop_caches` on that host, then apply again."
	}
	return cause + " Page cache counts as used on this machine, and so does every other process.",
		"Lower --gpu-memory-utilization in args (0.80 to 0.83 is what a DGX Spark reaches), stop what else uses the GPU, or give page cache back (`sync; echo 3 | sudo tee /proc/sys/vm/drop_caches`)."
}

func outOfMemory(evidence Evidence) (string, string) {
	cause := "Memory ran out: the weights of one node, the KV cache and the page cache of the checkpoint share one memory."
	if evidence.OOMKilled {
		cause = "The kernel killed a process of the container for memory: the weights of one node, the KV cache and the page cache of the checkpoint share one memory."
	}
	if evidence.Memory.Total > 0 {
		cause += fmt.Sprintf(" The host has %d GiB, of which %d GiB are free now.", evidence.Memory.Total/gib, evidence.Memory.Free/gib)
	}
	return cause, "Lower --gpu-memory-utilization or --max-model-len in args, or spread the model over more nodes."
}
