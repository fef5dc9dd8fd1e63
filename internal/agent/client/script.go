package client

import (
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// Each script is one line in single quotes after `sh -c`, without a quote, backslash, exclamation
// mark or newline in it: bash, dash, zsh, tcsh and fish all hand such a word on as it is.

// folderScript sets d to the agent's folder; a relative XDG_CACHE_HOME is to be ignored, says its specification.
const folderScript = `case "$XDG_CACHE_HOME" in /*) d="$XDG_CACHE_HOME";; *) d="$HOME/.cache";; esac; d="$d/spark-stack"`

// startScript becomes the agent, or says that it is missing and on what machine.
// programs maps Go's name of an architecture to the digest of its program.
func startScript(programs map[string]string) string {
	return shell(folderScript + `; m=$(uname -m); s=$(uname -s); h=; ` +
		`case "$s-$m" in ` +
		`Linux-x86_64|Linux-amd64) h="` + fileKey(programs["amd64"]) + `";; ` +
		`Linux-aarch64|Linux-arm64) h="` + fileKey(programs["arm64"]) + `";; ` +
		`esac; a="$d/spark-agent-$h"; ` +
		`if test -n "$h" && test -x "$a"; then exec "$a" serve; fi; ` +
		`p=absent; if test -n "$h" && test -e "$a"; then p=present; fi; ` +
		`echo; echo "` + wire.Magic + `missing $m $s $p $a"`)
}

// uploadScript stores its standard input as the agent's program, proves it and removes older ones.
// Nothing but a whole, proven program ever gets the name that startScript looks for.
func uploadScript(digest string) string {
	return shell(folderScript + `; say() { echo; echo "` + wire.Magic + `$1 $2"; }; umask 077; ` +
		`t="$d/.upload-$$"; a="$d/spark-agent-` + fileKey(digest) + `"; ` +
		`mkdir -p "$d" && chmod 700 "$d" && : > "$t" || { say unwritable "$d"; exit 1; }; ` +
		`trap "rm -f .upload-$$" EXIT HUP INT TERM; cd "$d"; ` +
		`cat > "$t" && chmod 700 "$t" || { say unwritten "$t"; exit 1; }; ` +
		`g=$("$t" --sha256); ` +
		`if test "$g" = "` + digest + `"; then :; else ` +
		`g=$(sha256sum < "$t"); g="${g%% *}"; ` +
		`if test "$g" = "` + digest + `"; then say unrunnable "$d"; else say truncated "$t"; fi; exit 1; fi; ` +
		`mv -f "$t" "$a" || { say unwritten "$a"; exit 1; }; ` +
		`for f in "$d"/spark-agent-*; do test "$f" = "$a" || rm -f "$f"; done; ` +
		`find "$d" -name ".upload-*" -mmin +60 -exec rm -f {} +; say uploaded "$a"`)
}

// fileKey is the part of a digest that names the program's file.
func fileKey(digest string) string { return digest[:min(12, len(digest))] }

// shell wraps a script for the login shell.
func shell(script string) string { return "sh -c '" + script + "'" }

// missing is the answer of startScript when there is no agent. It is an error, the only one that an
// upload cures.
type missing struct {
	machine, system string
	// present says that the file is there but cannot be run.
	present bool
	path    string
}

// Error implements error; it is seen when an upload did not help.
func (m *missing) Error() string {
	return m.path + " was uploaded, and is not there now: something cleans that folder"
}

func parseMissing(text string) (*missing, bool) {
	rest, found := strings.CutPrefix(text, "missing ")
	fields := strings.SplitN(rest, " ", 4)
	if !found || len(fields) != 4 {
		return nil, false
	}
	return &missing{machine: fields[0], system: fields[1], present: fields[2] == "present", path: fields[3]}, true
}

// architecture is Go's name of what uname said, or an error that names it.
func (m *missing) architecture() (string, error) {
	if m.system == "Linux" {
		switch m.machine {
		case "x86_64", "amd64":
			return "amd64", nil
		case "aarch64", "arm64":
			return "arm64", nil
		}
	}
	return "", fmt.Errorf("the node runs %s on %s; the agent runs on Linux, on aarch64 (as a DGX Spark) or x86_64", m.system, m.machine)
}
