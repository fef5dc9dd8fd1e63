package weights

import (
	"fmt"
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Compare judges one host's listing against the manifest. Files that the manifest does not name do
// not count: vLLM reads only what the index names.
func Compare(manifest Manifest, listing agent.Listing) State {
	state := State{Condition: Incomplete, Bad: map[string]string{}}
	have := map[string]agent.File{}
	for _, file := range listing.Files {
		have[file.Name] = file
	}
	present := 0
	for _, want := range manifest.Files {
		file, found := have[want.Name]
		if found {
			present++
		}
		if reason := fault(want, file, found); reason != "" {
			state.Bad[want.Name] = reason
			continue
		}
		state.Files++
		state.Bytes += want.Size
	}
	switch {
	case len(state.Bad) == 0:
		state.Condition = Complete
	case present == 0:
		state.Condition = Missing
	}
	return state
}

// Wanted is the state of a host that has everything.
func Wanted(manifest Manifest) State {
	return State{Condition: Complete, Files: len(manifest.Files), Bytes: manifest.Bytes(), Bad: map[string]string{}}
}

// Lost says that a file of the manifest is good on no host: nothing can repair it, but the model may have been
// renewed everywhere.
func Lost(manifest Manifest, states map[string]State) bool {
	return slices.ContainsFunc(manifest.Files, func(file agent.File) bool {
		for _, state := range states {
			if state.Bad[file.Name] == "" {
				return false
			}
		}
		return len(states) > 0
	})
}

// Line is the sentence for a host whose weights are not as they should be; empty if they are.
func Line(host string, manifest Manifest, state State) string {
	if state.Condition == Complete {
		return ""
	}
	text := fmt.Sprintf("%s: weights %s, %d of %d files, %d of %d bytes",
		host, state.Condition, state.Files, len(manifest.Files), state.Bytes, manifest.Bytes())
	others := 0
	for _, name := range sortedKeys(state.Bad) {
		if state.Bad[name] != otherContent { // The counts tell that.
			continue
		}
		if others++; others == 1 {
			text += "; " + name + " has " + otherContent
		}
	}
	if others > 1 {
		text += fmt.Sprintf(", and so have %d more", others-1)
	}
	return text
}

// Lines are the sentences of all hosts, sorted by host.
func Lines(manifest Manifest, states map[string]State) []string {
	var lines []string
	for _, host := range sortedKeys(states) {
		if line := Line(host, manifest, states[host]); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// fault says why a file is not what the manifest wants; empty if it is.
func fault(want, file agent.File, found bool) string {
	switch {
	case !found:
		return "missing"
	case file.Size == 0 && file.Damage != "":
		return file.Damage // Such as a link to a blob that is not there.
	case file.Size != want.Size:
		return fmt.Sprintf("%d of %d bytes", file.Size, want.Size)
	case file.Damage != "":
		return file.Damage
	case want.Fingerprint != "" && file.Fingerprint != "" && want.Fingerprint != file.Fingerprint,
		want.SHA256 != "" && file.SHA256 != "" && want.SHA256 != file.SHA256:
		return otherContent
	}
	return ""
}

// otherContent is the reason for a file that only its content tells from the accepted one.
const otherContent = "other content than accepted, of the same size"
