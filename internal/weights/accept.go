package weights

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Accept judges whether what lies on a host is a whole model: a configuration, at least one weight
// file, every shard that the index names, and no file whose own structure is broken. The manifest
// is what all hosts shall have; it is of use only if there is no problem. Below is the place's.
func Accept(host, below string, listing agent.Listing) (Manifest, []Problem) {
	folder := path.Join(listing.Folder, below)
	problem := func(detail, format string, args ...any) Problem {
		return Problem{Summary: fmt.Sprintf("Model folder %s on %s ", folder, host) + fmt.Sprintf(format, args...), Detail: detail}
	}
	files := inside(below, listing.Files)
	if !listing.Exists || len(files) == 0 {
		state := "does not exist"
		if listing.Exists {
			state = "is empty"
		}
		return Manifest{}, []Problem{problem("Put the model there on one of the nodes; the others get it from that one.", "%s", state)}
	}
	var problems []Problem
	if !contains(files, below, "config.json") && !contains(files, below, "params.json") {
		problems = append(problems, problem("vLLM reads the architecture from it. Is this the folder of one model, or the one above?", "has no config.json"))
	}
	if !slices.ContainsFunc(files, isWeights) {
		problems = append(problems, problem("Only small files were found; the download or copy did not get as far.", "has no weights"))
	}
	problems = append(problems, shardProblems(problem, below, files, listing.Shards)...)
	for _, file := range files {
		if file.Damage != "" {
			problems = append(problems, problem(
				"vLLM reads such a file without an error and then answers nonsense. Fetch it again, or remove it here if another node has a good copy.",
				"is damaged: %s: %s", file.Name, file.Damage))
		}
	}
	manifest := Manifest{}
	for _, file := range files {
		manifest.Files = append(manifest.Files, agent.File{Name: file.Name, Size: file.Size, Link: file.Link, SHA256: digest(file), Fingerprint: file.Fingerprint})
	}
	slices.SortFunc(manifest.Files, func(a, b agent.File) int { return cmp.Compare(a.Name, b.Name) })
	return manifest, problems
}

// Discover finds the accepted content when there is none yet: the first host, in order, that holds
// a whole model; of hosts that hold one, those that still hold what is to be renewed come last. If none does, but their good files make one together, host is empty and Plan gives
// each host what it lacks. Else the problems of all hosts are returned.
func Discover(order []string, below string, listings map[string]agent.Listing, renews []agent.File) (Manifest, string, []Problem) {
	var problems []Problem
	var fresh, old []string
	for _, host := range order {
		if len(renews) > 0 && Compare(Manifest{Files: renews}, listings[host]).Condition == Complete {
			old = append(old, host)
		} else {
			fresh = append(fresh, host)
		}
	}
	for _, host := range append(fresh, old...) {
		listing, found := listings[host]
		if !found {
			continue
		}
		manifest, bad := Accept(host, below, listing)
		if len(bad) == 0 {
			return manifest, host, nil
		}
		problems = append(problems, bad...)
	}
	if together, agree := union(order, listings); agree {
		if manifest, bad := Accept("", below, together); len(bad) == 0 {
			return manifest, "", nil
		}
	}
	return Manifest{}, "", problems
}

// union is every good file of any host. Hosts that hold different files under one name do not agree:
// they may hold different models, and a mixture of them would be accepted by nobody.
func union(order []string, listings map[string]agent.Listing) (together agent.Listing, agree bool) {
	have := map[string]agent.File{}
	for _, host := range order {
		listing := listings[host]
		together.Folder, together.Exists = listing.Folder, together.Exists || listing.Exists
		together.Shards = append(together.Shards, listing.Shards...)
		for _, file := range listing.Files {
			other, found := have[file.Name]
			switch {
			case file.Damage != "":
			case !found:
				have[file.Name] = file
				together.Files = append(together.Files, file)
			case other.Size != file.Size || digest(other) != digest(file) || other.Fingerprint != file.Fingerprint:
				return agent.Listing{}, false
			}
		}
	}
	slices.Sort(together.Shards)
	together.Shards = slices.Compact(together.Shards)
	return together, len(have) > 0
}

// shardProblems looks at the safetensors shards as a set: a missing one is invisible file by file.
func shardProblems(problem func(string, string, ...any) Problem, below string, files []agent.File, shards []string) []Problem {
	var problems []Problem
	indexed := slices.ContainsFunc(files, func(file agent.File) bool { return strings.HasSuffix(file.Name, ".safetensors.index.json") })
	if indexed {
		have := map[string]bool{}
		for _, file := range files {
			have[file.Name] = true
		}
		var missing []string
		for _, shard := range shards {
			if (below == "" || within(shard, below)) && !have[shard] {
				missing = append(missing, shard)
			}
		}
		if len(missing) > 0 {
			problems = append(problems, problem("The index names them. Fetch them again, or serve from a node that has them.",
				"lacks %d of %d shards: %s", len(missing), len(shards), strings.Join(missing, ", ")))
		}
		return problems
	}
	count := 0
	for _, file := range files {
		if path.Dir(file.Name) == path.Clean(below) && strings.HasSuffix(file.Name, ".safetensors") {
			count++
		}
	}
	if count > 1 {
		problems = append(problems, problem(fmt.Sprintf("It holds %d safetensors shards, and without the index nothing tells whether there should be more.", count),
			"has no model.safetensors.index.json"))
	}
	return problems
}

// inside keeps the files below a path of the folder; empty keeps all.
func inside(below string, files []agent.File) []agent.File {
	if below == "" {
		return files
	}
	var kept []agent.File
	for _, file := range files {
		if within(file.Name, below) {
			kept = append(kept, file)
		}
	}
	return kept
}

func contains(files []agent.File, below, name string) bool {
	return slices.ContainsFunc(files, func(file agent.File) bool { return file.Name == path.Join(below, name) })
}

func isWeights(file agent.File) bool {
	return slices.Contains([]string{".safetensors", ".bin", ".gguf", ".pt", ".pth"}, path.Ext(file.Name))
}

// digest is the content's sha256 as far as it is known without reading: the hub cache names the
// blobs of large files by it (small files by a git hash of 40 digits).
func digest(file agent.File) string {
	if name := path.Base(file.Link); regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(name) {
		return name
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
