// Package diagnose maps what a log says, with the evidence of what else was seen, to a cause and a
// next step. It is pure. Every rule has a number that is stable, so that tests and notes can name it:
// a finding cites the one that it comes from.
package diagnose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Evidence is what was seen beside the log. Every field may be missing; a cause is then worded with
// what is known.
type Evidence struct {
	// Identity maps hosts to their identity addresses.
	Identity map[string]string
	// RayAddresses are those by which the GCS knows its living nodes.
	RayAddresses []string
	// Image is the reference that was run.
	Image string
	// Port is the one that the server shall listen on.
	Port int
	// Kernel is the release of the host's kernel.
	Kernel string
	// Memory of the host whose log it is.
	Memory agent.Memory
	// OOMKilled says that the kernel killed the container for memory.
	OOMKilled bool
	// Waited is for how long the server had been starting.
	Waited time.Duration
}

// Finding is a diagnosed failure.
type Finding struct {
	// Row is the number of the rule.
	Row int
	// Host is where it happened, if the line tells and the evidence knows the address.
	Host string
	// Line is the line of the log that gave it away, without colours.
	Line string
	// Cause is one or two sentences, Next the step to take.
	Cause, Next string
	// Fatal says that waiting will not help, even if the process still runs.
	Fatal bool
}

// String is the finding as one paragraph.
func (f Finding) String() string { return f.Cause + " " + f.Next }

// rule recognises one symptom. Explain may decline by an empty cause.
type rule struct {
	row     int
	pattern string
	fatal   bool
	explain func(match []string, evidence Evidence) (cause, next string)
}

// Explain finds the most telling symptom in a log. Rules are ordered by how much they explain: a
// generic symptom, such as a rank that died, counts only when nothing says why.
func Explain(log string, evidence Evidence) (Finding, bool) {
	log = Plain(log)
	for _, one := range slices.Concat(identityRules(), rayRules(), linkRules(), gpuRules(), memoryRules(), modelRules(), lifeRules()) {
		for _, at := range regexp.MustCompile(one.pattern).FindAllStringSubmatchIndex(log, -1) {
			cause, next := one.explain(groups(log, at), evidence)
			if cause == "" {
				continue
			}
			line := lineAt(log, at[0])
			return Finding{Row: one.row, Host: hostOf(line, evidence), Line: line, Cause: cause, Next: next, Fatal: one.fatal}, true
		}
	}
	if evidence.OOMKilled {
		cause, next := outOfMemory(evidence)
		return Finding{Row: 59, Cause: cause, Next: next, Fatal: true}, true
	}
	return Finding{}, false
}

// Plain is a log without colours and carriage returns.
func Plain(log string) string {
	log = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]").ReplaceAllString(log, "")
	return strings.ReplaceAll(strings.ReplaceAll(log, "\r\n", "\n"), "\r", "\n")
}

// groups are the submatches as text; one that took no part is empty.
func groups(text string, at []int) []string {
	var match []string
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 {
			match = append(match, "")
			continue
		}
		match = append(match, text[at[i]:at[i+1]])
	}
	return match
}

// lineAt is the whole line around an offset.
func lineAt(text string, offset int) string {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	return strings.TrimSpace(line)
}

// hostOf reads the address in Ray's prefix, "(RayWorkerProc pid=71, ip=192.168.200.13)".
func hostOf(line string, evidence Evidence) string {
	match := regexp.MustCompile(`\bpid=\d+, ip=([0-9a-fA-F.:]+)\)`).FindStringSubmatch(line)
	if match == nil {
		return ""
	}
	for host, address := range evidence.Identity {
		if address == match[1] {
			return host
		}
	}
	return ""
}

// fixed is a rule's answer that needs no evidence.
func fixed(cause, next string) func([]string, Evidence) (string, string) {
	return func([]string, Evidence) (string, string) { return cause, next }
}

// identities is "192.168.200.12 (10.1.230.180) and 192.168.200.13 (10.1.230.181)".
func (e Evidence) identities() string {
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(e.Identity)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", e.Identity[host], host))
	}
	return enumerate(parts)
}

// isIdentity says whether an address is one of the cluster's, and whether that can be told.
func (e Evidence) isIdentity(address string) (is, known bool) {
	return slices.Contains(slices.Collect(maps.Values(e.Identity)), address), len(e.Identity) > 0
}

// enumerate joins with commas and an "and".
func enumerate(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
