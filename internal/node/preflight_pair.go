package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// machineTwice: one machine under two names. The machine-id alone proves nothing: some DGX Sparks were
// shipped with equal ones.
func machineTwice(cluster Cluster) ([]string, *Finding) {
	seen := map[string]Member{}
	for _, member := range cluster.Members {
		for _, device := range member.Facts.Interfaces {
			if member.Facts.MachineID == "" || device.MAC == "" || device.Kind != "" || device.SpeedMbps == 0 {
				continue // Bridges and the like share addresses between machines.
			}
			key := member.Facts.MachineID + " " + device.MAC
			other, known := seen[key]
			if !known || other.Host == member.Host {
				seen[key] = member
				continue
			}
			return []string{other.Host, member.Host}, &Finding{
				Severity: Error, Row: 104, Summary: fmt.Sprintf("%s and %s are one machine", other.Host, member.Host),
				Cause: fmt.Sprintf("Both have the machine-id %s and on %s the hardware address %s.", member.Facts.MachineID, device.Name, device.MAC),
				Fix:   "Name each machine once.",
			}
		}
	}
	return nil, nil
}

// differing says who has which value; empty while all that have one agree.
func differing(members []Member, value func(agent.Facts) string) string {
	groups := map[string][]Member{}
	for _, member := range members {
		if one := value(member.Facts); one != "" {
			groups[one] = append(groups[one], member)
		}
	}
	if len(groups) < 2 {
		return ""
	}
	var said []string
	for _, value := range slices.Sorted(maps.Keys(groups)) {
		said = append(said, value+" on "+names(groups[value]))
	}
	return strings.Join(said, ", ")
}

// architectures: one image runs on all nodes.
func architectures(cluster Cluster) ([]string, *Finding) {
	who := differing(cluster.Members, func(facts agent.Facts) string { return facts.Architecture })
	if who == "" {
		return nil, nil
	}
	return hosts(cluster.Members), &Finding{
		Severity: Error, Row: 53, Summary: "The nodes have different architectures",
		Cause: who + ". The same image, by id, must run on every node (\"exec format error\").",
		Fix:   "Make a cluster of machines of one kind.",
	}
}

// drivers: one node with another driver slows all of them.
func drivers(cluster Cluster) ([]string, *Finding) {
	who := differing(cluster.Members, func(facts agent.Facts) string { return facts.Driver })
	if who == "" {
		return nil, nil
	}
	return hosts(cluster.Members), &Finding{
		Severity: Warning, Row: 52, Summary: "The nodes have different NVIDIA drivers",
		Cause: who + ". A pair with unequal drivers was reported to be 2.4 times slower.",
		Fix:   "Update them to one version (sudo apt full-upgrade, then restart).",
	}
}

// homes: "~/" is each login user's home, and the model's path is one for all containers.
func homes(cluster Cluster) ([]string, *Finding) {
	if !strings.HasPrefix(cluster.WeightsDir, "~/") {
		return nil, nil
	}
	who := differing(cluster.Members, func(facts agent.Facts) string { return facts.User.Home })
	if who == "" {
		return nil, nil
	}
	return hosts(cluster.Members), &Finding{
		Severity: Error, Row: 102, Summary: "The login users' homes differ",
		Cause: fmt.Sprintf("weights_dir is %s, and the home is %s. The folder has one path in all containers, by which vLLM's ranks find the model.", cluster.WeightsDir, who),
		Fix:   "Write weights_dir as an absolute path that every user may write to, or log in as the same user everywhere.",
	}
}

// otherRay: a Ray that is not ours takes ports and GPUs of the host.
func otherRay(member Member) *Finding {
	for _, process := range member.Facts.Rays {
		if process.Container != "" && slices.Contains(member.Ours, process.Container) {
			continue
		}
		where := "outside of any container"
		if process.Container != "" {
			where = "in container " + process.Container[:min(12, len(process.Container))]
		}
		known := ""
		if process.NodeAddress != "" {
			known = ", known as " + process.NodeAddress
		}
		if process.Cluster != "" {
			known += ", of the cluster at " + process.Cluster
		}
		return &Finding{
			Severity: Warning, Row: 24, Summary: fmt.Sprintf("%s: another Ray is running", member.name()),
			Cause: fmt.Sprintf("%s (process %d, %s%s) is not the provider's. Two Rays on one host offer the same GPU, and with one port they join each other (\"Session name … does not match persisted value\").",
				process.Kind, process.PID, where, known),
			Fix: "Stop it there (ray stop, or docker stop), if it is not meant to share the GPU.",
		}
	}
	return nil
}

// gpuTaken: CPU and GPU of a GB10 share one memory, and whoever has it is in the way.
func gpuTaken(member Member) *Finding {
	for _, process := range member.Facts.GPUProcesses {
		if !strings.Contains(process.Type, "C") || process.Container != "" && slices.Contains(member.Ours, process.Container) {
			continue
		}
		has := ""
		if process.MemoryMiB > 0 {
			has = fmt.Sprintf(" with %.1f GiB", float64(process.MemoryMiB)/1024)
		}
		return &Finding{
			Severity: Warning, Row: 66, Summary: fmt.Sprintf("%s: the GPU is in use", member.name()),
			Cause: fmt.Sprintf("Process %d (%s) computes on GPU %d%s. Memory is shared, so the model may not fit beside it, and tokens come at a third of the rate.", process.PID, process.Name, process.GPU, has),
			Fix:   "Stop it there, or leave it room with a lower gpu_memory_utilization.",
		}
	}
	return nil
}
