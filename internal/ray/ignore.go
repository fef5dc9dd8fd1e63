package ray

import (
	"maps"
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
)

// The kinds of drift that a user can decide to live with, named as in `nodes`.
const (
	KindCommand  = "command"
	KindEnv      = "env"
	KindGPUCount = "gpu_count"
	KindImage    = "image"
)

// Kinds are all kinds of drift that can be ignored. Another identity address is none of them, nor is a
// variable that carries one: whoever lives with these has two clusters.
func Kinds() []string { return []string{KindCommand, KindEnv, KindGPUCount, KindImage} }

// Living is the wanted cluster of somebody who lives with some kinds of drift: these values are wanted
// as they are seen, where there is a container.
func Living(want, seen map[string]Node, kinds []string) map[string]Node {
	if len(kinds) == 0 {
		return want
	}
	want = maps.Clone(want)
	for host, node := range want {
		is, found := seen[host]
		if !found || is.Container == missing {
			continue
		}
		for _, kind := range kinds {
			switch kind {
			case KindCommand:
				node.Command = is.Command
			case KindEnv:
				node.Env = livingEnv(node.Env, is.Env)
			case KindGPUCount:
				node.GPUs = is.GPUs
			case KindImage:
				node.Image = is.Image
			}
		}
		want[host] = node
	}
	return want
}

// livingEnv takes over what differs and is not the provider's.
func livingEnv(want, seen map[string]string) map[string]string {
	env := maps.Clone(want)
	for _, name := range container.EnvDiffers(want, seen) {
		value, found := seen[name]
		switch {
		case managed(name):
		case found:
			env[name] = value
		default:
			delete(env, name)
		}
	}
	return env
}

// Declares are the attributes of a declaration that a kind of drift is judged by: with a change of one,
// a kind is a change and no drift.
func Declares(kind string) []string {
	switch kind {
	case KindCommand:
		return []string{"args", "port", "head", "workers"}
	case KindEnv:
		return []string{"env"}
	case KindGPUCount:
		return []string{"head", "workers"}
	default:
		return []string{"image"}
	}
}

// Ignored are the kinds that are lived with while some attributes change.
func Ignored(kinds, changed []string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return slices.ContainsFunc(Declares(kind), func(name string) bool { return slices.Contains(changed, name) })
	})
}
