package ray

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// unset stands for a managed variable that a container does not have.
const unset = "(unset)"

// Lines are the sentences of drift: what differs from the wanted cluster, on which host, the head
// first. Empty and not nil if nothing does. Values of the user's variables are never in them.
func Lines(want, seen map[string]Node) []string {
	lines := []string{}
	for _, host := range ordered(want) {
		name := cmp.Or(want[host].Name, seen[host].Name, host)
		for _, sentence := range differences(want[host], seen[host], headIsMember(want, seen), " changed by hand") {
			lines = append(lines, name+": "+sentence)
		}
	}
	return lines
}

// Decide names the hosts whose container must be replaced, with the reason. A changed head replaces
// every member: its GCS holds the cluster, and a raylet does not survive it.
func Decide(want, seen map[string]Node) map[string]string {
	replace := map[string]string{}
	headName := ""
	for _, host := range ordered(want) {
		reasons := differences(want[host], seen[host], headIsMember(want, seen), " differs")
		if len(reasons) > 0 {
			replace[host] = strings.Join(reasons, "; ")
			if want[host].Role == Head {
				headName = cmp.Or(want[host].Name, host)
			}
		}
	}
	if headName == "" {
		return replace
	}
	for host := range want {
		if replace[host] == "" {
			replace[host] = "the head " + headName + " is replaced"
		}
	}
	return replace
}

// ordered are the hosts, the head's first.
func ordered(nodes map[string]Node) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		first := func(host string) int {
			if nodes[host].Role == Head {
				return 0
			}
			return 1
		}
		return cmp.Or(first(a)-first(b), strings.Compare(a, b))
	})
}

// headIsMember says whether Ray knows the head. If not, that a worker is no member is a consequence
// and not worth a line of its own.
func headIsMember(want, seen map[string]Node) bool {
	for host, node := range want {
		if node.Role == Head {
			return seen[host].Address != ""
		}
	}
	return true
}

// differences are what must be said of one host. by is what a changed thing "is".
func differences(want, seen Node, headIsMember bool, by string) []string {
	if seen.Container == "" || seen.Container == missing {
		return []string{"container is missing"}
	}
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if seen.Container != want.Container {
		add("container is %s%s, should be %s", seen.Container, container.Ending(seen.Container, seen.ExitCode, seen.OOMKilled), want.Container)
	} else {
		all = append(all, membership(want, seen, headIsMember)...)
	}
	if seen.Image != want.Image {
		add("image is %s, should be %s", seen.Image, want.Image)
	}
	if want.Command == "" {
		add("identity address is not known yet")
	} else if seen.Command != want.Command {
		add("command%s (%s)", by, wordsDiffer(want.Command, seen.Command))
	}
	var other []string
	for _, name := range container.EnvDiffers(want.Env, seen.Env) {
		value, found := seen.Env[name]
		switch {
		case !managed(name):
			other = append(other, name)
		case !found || value == unset:
			add("%s is not set", name)
		case slices.Contains(AuthNames(), name):
			add("%s is not what the declared authentication needs", name)
		default:
			add("%s is %s, which is not what this node needs now", name, value)
		}
	}
	if len(other) > 0 {
		add("environment%s (%s)", by, strings.Join(other, ", "))
	}
	return append(all, seen.SpecDrift...)
}

// membership is what Ray says of a member whose container runs.
func membership(want, seen Node, headIsMember bool) []string {
	switch {
	case seen.Address == "" && (want.Role == Head || headIsMember):
		if want.Cluster == "" {
			return []string{"not a member of the cluster"}
		}
		return []string{"not a member of the cluster at " + want.Cluster}
	case seen.Address == "":
		return nil
	}
	var all []string
	if want.Address != "" && seen.Address != want.Address {
		all = append(all, fmt.Sprintf("Ray node address %s, should be %s", seen.Address, want.Address))
	}
	switch {
	case seen.GPUs < want.GPUs:
		all = append(all, fmt.Sprintf("Ray sees %d of %d GPUs", seen.GPUs, want.GPUs))
	case seen.GPUs > want.GPUs:
		all = append(all, fmt.Sprintf("Ray sees %d GPUs, should be %d", seen.GPUs, want.GPUs))
	}
	return all
}

// managed says whether the provider sets the variable by itself.
func managed(name string) bool {
	return slices.Contains(identity.Reserved(), name) || slices.Contains(AuthNames(), name)
}

// wordsDiffer says which words of a command line are missing and which are too many.
func wordsDiffer(want, seen string) string {
	wanted, got := strings.Fields(want), strings.Fields(seen)
	lacking := slices.DeleteFunc(slices.Clone(wanted), func(word string) bool { return slices.Contains(got, word) })
	extra := slices.DeleteFunc(slices.Clone(got), func(word string) bool { return slices.Contains(wanted, word) })
	var parts []string
	if len(lacking) > 0 {
		parts = append(parts, "without "+strings.Join(lacking, " "))
	}
	if len(extra) > 0 {
		parts = append(parts, "with "+strings.Join(extra, " "))
	}
	if len(parts) == 0 {
		return "the same words in another order"
	}
	return strings.Join(parts, ", ")
}
