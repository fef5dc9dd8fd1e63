package ray

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// look is what was found on one host.
type look struct {
	facts     agent.Facts
	container engine.Container
	exists    bool
	// imageEnv is the environment of the image that the container was made from.
	imageEnv map[string]string
	// declared is the declared image as this host has it; empty if it does not.
	declared engine.Image
	// token is Ray's as this host has it. One that may not be seen is there and empty.
	token    string
	hasToken bool
}

// nodeOf turns what was found on a host into the entry of the `nodes` map. at is the host's entry in
// Ray's node table, if Ray knows it.
func nodeOf(spec Spec, member Member, found look, at gcs.Node, isMember bool) Node {
	node := Node{Name: member.Name, Role: member.Role, Cluster: Address(spec), Container: missing, Env: map[string]string{}}
	if !found.exists {
		return node
	}
	container := found.container
	node.Container, node.ExitCode, node.OOMKilled = container.Status, container.ExitCode, container.OOMKilled
	node.ContainerID = container.ID
	if !container.StartedAt.IsZero() {
		node.StartedAt = container.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	node.Command = commandLine(container.Spec.Command)
	node.Image = container.Spec.Image
	if found.declared.ID != "" {
		switch {
		case container.ImageID == found.declared.ID:
			node.Image = spec.Image // Under whatever reference it was started.
		case container.Spec.Image == spec.Image:
			node.SpecDrift = append(node.SpecDrift, fmt.Sprintf("container runs image %s, and %s is %s now", short(container.ImageID), spec.Image, short(found.declared.ID)))
		}
	}
	node.Env = envOf(spec, member, found)
	if !ours(spec, container) {
		node.SpecDrift = append(node.SpecDrift, fmt.Sprintf("container %s was not made by this provider", container.Spec.Name))
	}
	if want, err := ContainerSpec(spec, member, found.facts); err == nil {
		node.SpecDrift = append(node.SpecDrift, engine.SpecDifferences(want, container.Spec, nil)...)
	}
	if container.Status == running && isMember {
		node.Address, node.GPUs = at.Address, at.GPUs()
		if found.facts.GPUError == "" {
			// `ray start --num-gpus` is believed by Ray, whatever the host has.
			node.GPUs = min(node.GPUs, len(found.facts.GPUs))
		}
	}
	return node
}

// envOf is the part of a container's environment that the user configured or that is not as it
// should be: without what the image brings and without what the provider sets and is right.
func envOf(spec Spec, member Member, found look) map[string]string {
	expected, judged := expectedEnv(spec, member, found.facts)
	env := map[string]string{}
	for name, value := range found.container.Spec.Env {
		if _, configured := spec.Env[name]; configured {
			env[name] = value
			continue
		}
		want, managed := expected[name]
		switch {
		case managed && want == value:
		case !managed && !judged && slices.Contains(identity.Reserved(), name):
			// The address is not on the node: what should be in here cannot be told.
		case !managed && found.imageEnv[name] == value && has(found.imageEnv, name):
		default:
			env[name] = value
		}
	}
	for name := range expected {
		if _, configured := spec.Env[name]; !configured && !has(found.container.Spec.Env, name) {
			env[name] = unset
		}
	}
	return env
}

// expectedEnv is what the provider sets on the node now. judged is false if the interface could not
// be resolved; then only what follows from the addresses is expected.
func expectedEnv(spec Spec, member Member, facts agent.Facts) (env map[string]string, judged bool) {
	env = defaults()
	maps.Copy(env, authEnv(spec))
	id, err := identity.Resolve(facts, member.Address)
	if err == nil {
		maps.Copy(env, id.Env(Address(spec)))
		return env, true
	}
	for name, value := range (identity.Identity{Address: member.Address, GIDIndex: identity.NoGID}).Env(Address(spec)) {
		if value == member.Address || value == Address(spec) {
			env[name] = value
		}
	}
	return env, false
}

func has(env map[string]string, name string) bool {
	_, found := env[name]
	return found
}

// short is an image id as people read it.
func short(id string) string {
	digest := strings.TrimPrefix(id, "sha256:")
	return digest[:min(12, len(digest))]
}

// owners says which alive nodes of Ray's table run on which host, and which belong to none. Ray's
// host name tells best: an address can be claimed by `ray start` on any machine. It decides when it
// is one member's alone; else the address does, when it is on one member's interfaces alone.
func owners(alive []gcs.Node, facts map[string]agent.Facts) (byHost map[string][]gcs.Node, strangers []gcs.Node) {
	byHost = map[string][]gcs.Node{}
	for _, node := range alive {
		host := only(facts, func(one agent.Facts) bool { return one.Hostname != "" && one.Hostname == node.Hostname })
		if host == "" {
			host = only(facts, func(one agent.Facts) bool { return holdsAddress(one, node.Address) })
		}
		if host == "" {
			strangers = append(strangers, node)
			continue
		}
		byHost[host] = append(byHost[host], node)
	}
	return byHost, strangers
}

// only is the one host that fits, or empty.
func only(facts map[string]agent.Facts, fits func(agent.Facts) bool) string {
	found := ""
	for host, one := range facts {
		if !fits(one) {
			continue
		}
		if found != "" {
			return ""
		}
		found = host
	}
	return found
}

// holdsAddress says whether one of the node's interfaces has the address.
func holdsAddress(facts agent.Facts, address string) bool {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(facts.Interfaces, func(one agent.Interface) bool {
		return slices.ContainsFunc(one.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr().Unmap() == want.Unmap() })
	})
}

// entryOf picks the entry that counts for a host: the latest with the wanted address, else the latest.
func entryOf(entries []gcs.Node, address string) (gcs.Node, bool) {
	if len(entries) == 0 {
		return gcs.Node{}, false
	}
	return slices.MaxFunc(entries, func(one, other gcs.Node) int {
		here := func(node gcs.Node) int {
			if node.Address == address {
				return 1
			}
			return 0
		}
		return cmp.Or(here(one)-here(other), cmp.Compare(one.Started, other.Started))
	}), true
}

// uninvited are the living nodes of Ray's table that no declaration has. They are the head's drift: a
// new head has another token, without which they do not come back. One at a member's own address is
// the member's earlier life, whose end Ray has not noticed yet.
func uninvited(spec Spec, byHost map[string][]gcs.Node, strangers []gcs.Node) []string {
	var sentences []string
	for _, member := range spec.Members {
		entry, _ := entryOf(byHost[member.Host], member.Address)
		for _, other := range byHost[member.Host] {
			if other.Address != entry.Address {
				sentences = append(sentences, fmt.Sprintf("a second Ray node is alive on %s, at %s", member.label(), other.Address))
			}
		}
	}
	for _, node := range strangers {
		if slices.Contains(spec.Leaving, node.Address) {
			continue
		}
		sentences = append(sentences, fmt.Sprintf("a Ray node that is no member is alive in the cluster: %s at %s", cmp.Or(node.Hostname, "an unknown host"), node.Address))
	}
	return sentences
}
