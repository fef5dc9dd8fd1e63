package ray

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// Fault is a class of findings of the gate.
type Fault int

// The faults.
const (
	// NotMember: Ray has no alive node for the host.
	NotMember Fault = iota
	// WrongAddress: Ray knows the host by another address than the declared identity.
	WrongAddress
	// Stranger: an alive node belongs to no member, or to a member that has another one.
	Stranger
	// FewGPUs: Ray offers another number of GPUs than declared.
	FewGPUs
	// Busy: GPUs are taken before the server asks for them.
	Busy
	// LeftOver: a placement group is there before the server makes its own.
	LeftOver
	// SameAddress: two alive nodes of Ray's table have one address.
	SameAddress
	// Unprotected: the GCS answers calls without the token that it was given.
	Unprotected
)

// Finding is one reason why a server must not start.
type Finding struct {
	Fault Fault
	// Host is the member; empty for what belongs to none.
	Host string
	// Sentence says what was seen, with both addresses where there are two, and the cause.
	Sentence string
}

// Gate is the question between Ray and vLLM: exactly the declared nodes, each by its identity
// address, with its GPUs, none taken, nothing reserved. facts are the members' (by host): they tell
// which node of the table is which machine. Empty means go.
func Gate(want map[string]Node, table gcs.Table, facts map[string]agent.Facts) []Finding {
	return append(Membership(want, table, facts), Idle(want, table, facts)...)
}

// Membership is the part of the gate that holds while a server runs, too.
func Membership(want map[string]Node, table gcs.Table, facts map[string]agent.Facts) []Finding {
	findings := []Finding{}
	add := func(fault Fault, host, format string, args ...any) {
		findings = append(findings, Finding{Fault: fault, Host: host, Sentence: fmt.Sprintf(format, args...)})
	}
	alive := table.Alive()
	byHost, strangers := owners(alive, facts)
	for _, host := range ordered(want) {
		node := want[host]
		name := cmp.Or(node.Name, host)
		entry, found := entryOf(byHost[host], node.Address)
		switch {
		case !found:
			add(NotMember, host, "%s (%s) is not a member of the cluster: %d of %d nodes are alive%s", name, node.Address, len(alive), len(want), lastWord(table, facts[host], node.Address))
		case entry.Address != node.Address:
			add(WrongAddress, host, "%s", wrongAddress(name, entry.Address, node.Address, facts[host]))
		case !entry.Offers(node.Address):
			add(WrongAddress, host, "%s is registered by %s but offers no resource node:%s, which vLLM would ask for", name, entry.Address, node.Address)
		}
		if found && entry.GPUs() != node.GPUs {
			add(FewGPUs, host, "%s: Ray sees %d of %d GPUs", name, entry.GPUs(), node.GPUs)
		}
		for _, other := range byHost[host] {
			if other.ID != entry.ID {
				add(Stranger, host, "%s has a second Ray node alive, at %s: an earlier container whose end Ray has not noticed yet, or a raylet outside of ours", name, other.Address)
			}
		}
	}
	for at, node := range alive {
		if first := slices.IndexFunc(alive, func(one gcs.Node) bool { return one.Address == node.Address }); first < at && alive[first].Hostname != node.Hostname {
			add(SameAddress, "", "two Ray nodes are alive at the address %s, on %s and on %s; vLLM needs a distinct address per node",
				node.Address, cmp.Or(alive[first].Hostname, "an unknown host"), cmp.Or(node.Hostname, "an unknown host"))
		}
	}
	for _, node := range strangers {
		add(Stranger, "", "a Ray node that is no member is alive in the cluster: %s at %s; vLLM may place a rank there", cmp.Or(node.Hostname, "unknown host"), node.Address)
	}
	return findings
}

// Idle is the part of the gate that must hold before a server starts.
func Idle(want map[string]Node, table gcs.Table, facts map[string]agent.Facts) []Finding {
	findings := []Finding{}
	byHost, _ := owners(table.Alive(), facts)
	for _, host := range ordered(want) {
		entry, found := entryOf(byHost[host], want[host].Address)
		if used := entry.GPUsUsed(); found && used > 0 {
			findings = append(findings, Finding{Fault: Busy, Host: host, Sentence: fmt.Sprintf(
				"%s: %d of %d GPUs are taken in Ray by an actor or placement group that is still there", cmp.Or(want[host].Name, host), used, entry.GPUs())})
		}
	}
	for _, group := range table.Groups {
		findings = append(findings, Finding{Fault: LeftOver, Sentence: fmt.Sprintf(
			"placement group %s is left over in state %s with bundles %s: an earlier server's, which vLLM would wait behind for ever", cmp.Or(group.Name, group.ID), group.State, bundles(group.Bundles))})
	}
	return findings
}

// wrongAddress explains the identity bug in one sentence.
func wrongAddress(name, seen, want string, facts agent.Facts) string {
	cause := "ray start ran there without --node-ip-address"
	if len(facts.Interfaces) > 0 && !holdsAddress(facts, seen) {
		cause = "ray start ran there with an address that is not on this machine"
	}
	return fmt.Sprintf("%s is registered in Ray by %s but its identity address is %s: %s; vLLM would ask for node:%s and wait 1800 s, or serve over the management network",
		name, seen, want, cause, want)
}

// lastWord is what Ray said when it last saw the host die.
func lastWord(table gcs.Table, facts agent.Facts, address string) string {
	for _, node := range slices.Backward(table.Nodes) {
		mine := node.Address == address || facts.Hostname != "" && node.Hostname == facts.Hostname
		if mine && !node.Alive && node.DeathReason != "" {
			return "; Ray's last word on it: " + strings.TrimSpace(node.DeathReason)
		}
	}
	return ""
}

// bundles are the resources of a placement group in words.
func bundles(all []map[string]float64) string {
	var texts []string
	for _, bundle := range all {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(bundle)) {
			parts = append(parts, name+": "+strconv.FormatFloat(bundle[name], 'g', -1, 64))
		}
		texts = append(texts, "{"+strings.Join(parts, ", ")+"}")
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
