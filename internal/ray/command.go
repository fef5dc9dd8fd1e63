package ray

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
)

// Defaults of `ray start` on unified memory. Ray's own take 30 % of the RAM for an object store that
// vLLM hardly uses, and one idle Python worker per CPU; both are taken from the weights.
const (
	defaultCPUs        = "2"
	defaultObjectStore = "1073741824" // 1 GiB
)

// reservedArgs are the flags that the provider sets from other attributes, or that the server beside
// Ray relies on.
func reservedArgs() []string {
	return []string{"--node-ip-address", "--head", "--address", "--port", "--num-gpus", "--block", "--temp-dir"}
}

// Command is the whole `ray start` line of a member; nil while an address in it is unknown.
func Command(spec Spec, member Member) []string {
	cluster := Address(spec)
	if cluster == "" || member.Address == "" {
		return nil
	}
	command := []string{"ray", "start", "--block"}
	if member.Role == Head {
		command = append(command, "--head", "--node-ip-address="+member.Address, "--port="+strconv.Itoa(spec.port()))
	} else {
		command = append(command, "--address="+cluster, "--node-ip-address="+member.Address)
	}
	// Said aloud, so that a GPU that is not there fails in CUDA and not as a silent node without one.
	command = append(command, "--num-gpus="+strconv.Itoa(member.GPUs))
	for _, value := range []struct{ flag, value string }{
		{"--num-cpus", defaultCPUs},
		{"--object-store-memory", defaultObjectStore},
	} {
		if !hasFlag(spec.Args, value.flag) {
			command = append(command, value.flag+"="+value.value)
		}
	}
	if member.Role == Head {
		if !hasFlag(spec.Args, "--disable-usage-stats") {
			command = append(command, "--disable-usage-stats")
		}
		if !hasFlag(spec.Args, "--include-dashboard") {
			// The dashboard costs the head about 1.2 GB of memory that the model needs.
			command = append(command, "--include-dashboard=false")
		}
	}
	return append(command, spec.Args...)
}

// hasFlag says whether a flag is among the arguments, with its value in the same word or the next.
func hasFlag(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return flagName(arg) == flag })
}

// flagName is "--port" of "--port=6379".
func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// commandLine is a command as people read it.
func commandLine(command []string) string { return container.CommandLine(command) }
