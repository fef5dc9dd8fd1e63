package ray

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// Problem is a declaration that cannot work.
type Problem struct {
	// Path is the attribute of the resource: "name", "workers", "env".
	Path string
	// Summary is one line, Detail what to do.
	Summary, Detail string
}

// nameForm keeps container, volume and label names valid everywhere.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// The ports that Ray keeps for its workers by default; a GCS port among them ends `ray start`.
const (
	firstWorkerPort = 10002
	lastWorkerPort  = 19999
	dashboardPort   = 8265
	agentPort       = 52365
)

// Check finds what is wrong with a declaration before any host is asked. Unknown values pass.
func Check(spec Spec) []Problem {
	problems := []Problem{}
	add := func(path, summary, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if spec.Name != "" && !nameForm.MatchString(spec.Name) {
		add("name", "Invalid cluster name", "%q names the containers %q: use 1 to 40 lower-case letters, digits and hyphens, with a letter or digit at both ends.", spec.Name, "ray-"+spec.Name)
	}
	problems = append(problems, checkPort(spec)...)
	problems = append(problems, checkMembers(spec.Members)...)
	for _, name := range identity.Refused(spec.Env) {
		add("env", "Managed variable in env", "%s follows from the node's identity address and is set by the provider, on each node with that node's value. Remove it from env; the address is chosen with fabric_address on the node.", name)
	}
	for _, name := range AuthNames() {
		if _, found := spec.Env[name]; found {
			add("env", "Managed variable in env", "%s is set by the provider: the token is made for the cluster and never stored. Remove it from env; authentication = \"none\" does without.", name)
		}
	}
	for _, arg := range spec.Args {
		if container.SecretFlag(flagName(arg)) {
			add("args", "Secret in args", "%s carries a secret, and args are stored in state and shown by ps and docker inspect. Remove it.", flagName(arg))
		}
		if name := flagName(arg); slices.Contains(reservedArgs(), name) {
			add("args", "Managed argument in args", "%s is set by the provider (%s). Remove it from args.", name, reservedBecause(name))
		}
	}
	if dir := spec.WeightsDir; dir != "" && !validDir(dir) {
		add("weights_dir", "Invalid weights folder", "%q must be an absolute path, or one below the login user's home that starts with \"~/\", without \"..\": it is mounted at the same path in every container.", dir)
	}
	return problems
}

// checkPort finds ports that Ray will not take.
func checkPort(spec Spec) []Problem {
	port := spec.port()
	refuse := func(format string, args ...any) []Problem {
		return []Problem{{Path: "port", Summary: "Invalid GCS port", Detail: fmt.Sprintf(format, args...)}}
	}
	switch {
	case port < 1 || port > 65535:
		return refuse("%d is not a TCP port (1 to 65535).", port)
	case port >= firstWorkerPort && port <= lastWorkerPort && !hasFlag(spec.Args, "--min-worker-port") && !hasFlag(spec.Args, "--worker-port-list"):
		return refuse("%d is among the ports %d to %d that Ray keeps for its workers, and `ray start` ends with an error. Choose another one, or move the workers with --min-worker-port and --max-worker-port in args.", port, firstWorkerPort, lastWorkerPort)
	case port == dashboardPort, port == agentPort:
		return refuse("%d is a port of Ray's own dashboard, and `ray start` ends with an error. Choose another one; Ray's default is %d.", port, DefaultPort)
	}
	return nil
}

// checkMembers finds hosts and addresses that are there twice.
func checkMembers(members []Member) []Problem {
	var problems []Problem
	hosts, addresses := map[string]Member{}, map[string]Member{}
	for i, member := range members {
		attribute := "workers"
		if i == 0 {
			attribute = "head"
		}
		add := func(summary, format string, args ...any) {
			problems = append(problems, Problem{Path: attribute, Summary: summary, Detail: fmt.Sprintf(format, args...)})
		}
		if other, twice := hosts[member.Host]; twice {
			add("Host is a member twice", "%s is the %s already. Each host runs one Ray node.", member.Host, other.Role)
			continue
		}
		hosts[member.Host] = member
		if (member.Role == Head) != (i == 0) {
			add("Wrong role", "%s has the role %q; the first member is the head and all others are workers.", member.label(), member.Role)
		}
		if member.GPUs < 0 {
			add("Invalid GPU count", "%s has %d GPUs.", member.label(), member.GPUs)
		}
		if member.Address == "" {
			continue
		}
		if addr, err := netip.ParseAddr(member.Address); err != nil || addr.IsLoopback() && len(members) > 1 && !allLoopback(members) || addr.IsUnspecified() || addr.IsMulticast() {
			add("Invalid identity address", "%s has the identity address %q, by which no other node can reach it.", member.label(), member.Address)
			continue
		}
		if other, twice := addresses[member.Address]; twice {
			add("Two nodes with one identity address", "%s and %s both have the identity address %s. vLLM needs a distinct address per node: give one of them another fabric_address.", other.label(), member.label(), member.Address)
			continue
		}
		addresses[member.Address] = member
	}
	return problems
}

// allLoopback lets a whole cluster live on one machine's loopback network.
func allLoopback(members []Member) bool {
	return !slices.ContainsFunc(members, func(member Member) bool {
		addr, err := netip.ParseAddr(member.Address)
		return member.Address != "" && (err != nil || !addr.IsLoopback())
	})
}

// validDir says whether a folder can be mounted at the same path.
func validDir(dir string) bool {
	rest, home := strings.CutPrefix(dir, "~/")
	if home {
		return rest != "" && path.Clean("/"+rest) == "/"+strings.TrimSuffix(rest, "/")
	}
	return path.IsAbs(dir) && path.Clean(dir) == strings.TrimSuffix(dir, "/")
}

// reservedBecause says which attribute a flag comes from.
func reservedBecause(flag string) string {
	switch flag {
	case "--node-ip-address", "--address":
		return "from fabric_address of the nodes"
	case "--port":
		return "from the attribute port"
	case "--num-gpus":
		return "from gpu_count of the node"
	case "--temp-dir":
		return "the server's container shares it"
	default:
		return "from the node's role"
	}
}
