package clitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Leaves are all values that the plan changes, one a line and sorted:
//
//	ray_cluster.pair nodes/10.1.230.181/address: 192.168.200.13 -> 192.168.200.23
//
// Of a line of words, such as a command, only the words that differ are shown. Identifiers that no
// test can know are written as "<id>". The drift list is left out: see [Plan.Lines].
func (p Plan) Leaves() []string {
	lines := []string{}
	for address, change := range p.Changes {
		if len(change.Actions) == 1 && change.Actions[0] == "no-op" {
			continue
		}
		before, after := map[string]string{}, map[string]string{}
		flatten(before, "", change.Before)
		flatten(after, "", change.After)
		unknown := map[string]string{}
		flatten(unknown, "", change.Unknown)
		for path, value := range unknown {
			if value == "true" {
				after[path] = Unknown
			}
		}
		paths := maps.Clone(before)
		maps.Copy(paths, after)
		for path := range paths {
			was, will := shown(before, path), shown(after, path)
			if path == "drift" || was == will || path == "" {
				continue
			}
			was, will = differing(path, was, will)
			lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", address, path, was, will))
		}
	}
	slices.Sort(lines)
	return lines
}

// shown is the value at a path; a parent that is null or unknown as a whole covers its children.
func shown(values map[string]string, path string) string {
	for at := path; ; {
		if value, found := values[at]; found && (at == path || value == Unknown) {
			return value
		}
		cut := strings.LastIndex(at, "/")
		if cut < 0 {
			return "null"
		}
		at = at[:cut]
	}
}

// flatten writes every leaf of a value under its path.
func flatten(out map[string]string, path string, value any) {
	join := func(step string) string { return strings.TrimPrefix(path+"/"+step, "/") }
	switch typed := value.(type) {
	case map[string]any:
		for key, inner := range typed {
			flatten(out, join(key), inner)
		}
	case []any:
		if slices.ContainsFunc(typed, func(one any) bool { _, object := one.(map[string]any); return object }) {
			for i, inner := range typed {
				flatten(out, join(strconv.Itoa(i)), inner)
			}
			return
		}
		text, err := json.Marshal(typed)
		if err != nil {
			text = []byte(fmt.Sprint(typed))
		}
		out[path] = string(text)
	case nil:
		out[path] = "null"
	default:
		out[path] = fmt.Sprint(typed)
		if number, ok := typed.(float64); ok {
			out[path] = strconv.FormatFloat(number, 'f', -1, 64)
		}
	}
}

// differing shortens a pair of values to what can be compared.
func differing(path, was, will string) (string, string) {
	switch path[strings.LastIndex(path, "/")+1:] {
	case "container_id", "session", "cluster_session":
		mask := func(value string) string {
			if value == "null" || value == Unknown {
				return value
			}
			return "<id>"
		}
		return mask(was), mask(will)
	}
	if will == Unknown || !strings.Contains(was, " ") || !strings.Contains(will, " ") || strings.HasPrefix(was, "[") {
		return was, will
	}
	words, others := strings.Fields(was), strings.Fields(will)
	only := func(from, without []string) string {
		return "…" + strings.Join(slices.DeleteFunc(slices.Clone(from), func(word string) bool { return slices.Contains(without, word) }), " ") + "…"
	}
	return only(words, others), only(others, words)
}
