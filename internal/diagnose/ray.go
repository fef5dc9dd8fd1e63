package diagnose

import (
	"fmt"
	"regexp"
	"strings"
)

// rayRules know Ray's processes and versions.
func rayRules() []rule {
	return []rule{
		{20, `ray: (?:command )?not found|exec: "ray": executable file not found|No module named 'ray'|Failed to import Ray`, true, noRay},
		{21, `Version mismatch: The cluster was started with:?(?:\s*\n[^\n]*)?[\s\S]{0,400}`, true, versions},
		{22, `Memory on the node \(IP: ([0-9a-fA-F.:]+)[^\n]*?was ([\d.]+GB) / ([\d.]+GB) \(([\d.]+)\)`, true, memoryMonitor},
		{22, `Workers \(tasks / actors\) killed due to memory pressure \(OOM\)[^\n]*?IP: ([0-9a-fA-F.:]+)\)`, true, memoryMonitor},
		{22, `Task was killed due to the node running low on memory`, true, memoryMonitor},
		{24, `Session name \S+ does not match persisted value`, true, fixed(
			"The Ray node joined another cluster than the one that started here: an older Ray holds the GCS port on this host.",
			"Stop the other Ray on the head (`docker ps`, `ss -ltnp`), or give the cluster another port.")},
		{13, `Failed to connect to GCS at address ([0-9a-fA-F.:\[\]]+)`, false, func(match []string, _ Evidence) (string, string) {
			return fmt.Sprintf("The Ray head does not answer at %s.", strings.TrimRight(match[1], ".:")),
				"Is the head's Ray container up, and does a firewall block its port between the fabric addresses (`sudo ufw status`)?"
		}},
		{25, "Can't find a `?node_ip_address.json", true, fixed(
			"The server does not see the temporary folder of the Ray node on its host.",
			"The server and the Ray container must share one volume at /tmp/ray: apply the deployment again.")},
		{26, `Current node has no GPU available`, true, fixed(
			"Ray has no free GPU on the node where the server runs: it sees none there, or another placement group holds it.",
			"Check the GPU in the head's Ray container (`nvidia-smi -L`); apply the cluster again if it is gone, or stop the other server.")},
		{29, `\bSIGBUS\b|Bus error`, true, fixed(
			"A process wrote beyond /dev/shm: Docker's default of 64 MiB is too small for Ray and NCCL.",
			"The Ray container needs a shared memory of 10 GiB: apply the cluster again, which sets it.")},
	}
}

func noRay(_ []string, evidence Evidence) (string, string) {
	image := "The image"
	if evidence.Image != "" {
		image = "The image " + evidence.Image
	}
	return image + " has no Ray: NGC's vLLM images lost it with 26.04, vLLM's own with 0.18.",
		"Use an image that contains Ray. Do not install it at the start: each node could get another version."
}

// versions reads both blocks of Ray's message: "Ray: 2.53.0", "Python: 3.11.2".
func versions(match []string, _ Evidence) (string, string) {
	next := "Run one image, by its id, on all nodes and for the server."
	found := regexp.MustCompile(`(Ray|Python): (\S+)`).FindAllStringSubmatch(match[0], 4)
	if len(found) != 4 {
		return "The server and the cluster have different versions of Ray or Python.", next
	}
	return fmt.Sprintf("The cluster was started with Ray %s and Python %s, and this process has Ray %s and Python %s.",
		found[0][2], found[1][2], found[2][2], found[3][2]), next
}

func memoryMonitor(match []string, _ Evidence) (string, string) {
	where, load := "a node", ""
	if len(match) > 1 {
		where = match[1]
	}
	if len(match) > 4 {
		load = fmt.Sprintf(" at %s of %s", match[2], match[3])
	}
	return fmt.Sprintf("Ray's memory monitor killed a rank on %s%s: it counts unified memory, which holds the weights, as the host's.", where, load),
		"RAY_memory_monitor_refresh_ms must be 0 in the Ray container of every node. The provider sets that unless env overrides it: remove it there and apply the cluster again."
}
