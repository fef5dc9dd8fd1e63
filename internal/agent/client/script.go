package client

import (
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// Each script is one line in single quotes after `sh -c`, without a quote, backslash, exclamation
// mark or newline in it: bash, dash, zsh, tcsh and fish all hand such a word on as it is. Of programs
// they use what busybox has, and where one is missing they go on without it.

// way is how a script gets to a shell that runs it.
type way struct {
	// shell is "sh" or its path, for a login whose PATH does not lead there.
	shell string
	// careful is the way after the usual one had no answer, for two reasons that there may be. The
	// program is proven before it is run: after a crash its file may be empty. And the command is sent on
	// standard input too: a login shell that a start file has replaced by another one never sees the
	// command, and reads its input instead. Whoever runs the script, one line of input is taken when it
	// says so; nothing may follow before, for dash reads ahead.
	careful bool
}

// ready is what a script says first on the careful way.
const ready = "ready"

// command is the script for the login shell.
func (w way) command(script string) string {
	if w.careful {
		script = "read l; " + announced(script)
	}
	return w.shell + " -c '" + script + "'"
}

// input is what has to be sent before everything else, if anything.
func (w way) input(script string) string {
	if !w.careful {
		return ""
	}
	return "exec " + w.shell + " -c '" + announced(script) + "'\n"
}

func announced(script string) string { return `echo; echo "` + wire.Magic + ready + `"; ` + script }

// folders are the candidates for the program's folder on a node.
type folders struct {
	// given is the user's choice; then there is no other.
	given string
	// shared are places of everyone's, where ours is a folder named by the user's number.
	shared []string
}

// sharedFolders are the last resort: /var/tmp outlives a restart, /dev/shm is memory.
var sharedFolders = []string{"/var/tmp", "/dev/shm"}

// forbidden are the characters that some shell would touch in a double-quoted word within a
// single-quoted one.
const forbidden = "'\"\\$`!"

// CheckFolder says, as a *StartError, what is wrong with a folder that a user chose; nil if the scripts
// can name it.
func CheckFolder(folder string) error {
	below, home := strings.CutPrefix(folder, "~/")
	strange := func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(forbidden, r) }
	switch {
	case !home && !strings.HasPrefix(folder, "/"):
		return &StartError{Kind: StartBadFolder, Message: fmt.Sprintf("agent_dir %q is neither absolute nor below ~/", folder)}
	case home && below == "", strings.ContainsFunc(folder, strange):
		return &StartError{Kind: StartBadFolder, Message: fmt.Sprintf("agent_dir %q cannot be named to every shell", folder)}
	}
	return nil
}

// script defines each, which calls one with the kind and path of every candidate in order. A relative
// XDG_CACHE_HOME is to be ignored, says its specification.
func (f folders) script() string {
	var each strings.Builder
	if f.given != "" {
		if below, home := strings.CutPrefix(f.given, "~/"); home {
			fmt.Fprintf(&each, `case "$HOME" in /*) one given "$HOME/%s";; *) w="HOME of the login is not set";; esac; `, below)
		} else {
			fmt.Fprintf(&each, `one given "%s"; `, f.given)
		}
	} else {
		each.WriteString(`case "$XDG_CACHE_HOME" in /*) one own "$XDG_CACHE_HOME/spark-stack";; esac; ` +
			`case "$HOME" in /*) one own "$HOME/.cache/spark-stack";; esac; ` +
			`case "$XDG_RUNTIME_DIR" in /*) if test -d "$XDG_RUNTIME_DIR"; then one own "$XDG_RUNTIME_DIR/spark-stack"; fi;; esac; `)
		each.WriteString(`u=$(id -u 2>/dev/null); `) // Only here: a node that has the program need not start one more.
		for _, place := range f.shared {
			fmt.Fprintf(&each, `if test -n "$u" && test -d "%[1]s"; then one shared "%[1]s/spark-stack-$u"; fi; `, place)
		}
	}
	return `PATH="${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"; export PATH; ` +
		// safe: in a place of everyone's, only a folder of our own that nobody else can enter is ours.
		`safe() { if test -h "$1"; then return 1; fi; test -d "$1" && test -O "$1" || return 1; ` +
		`case $(ls -ld "$1") in drwx------*) return 0;; esac; return 1; }; ` +
		// guarded: the folder is the user's or root's, and not everybody may replace what is in it: a stranger could put
		// another program in the place of ours between a look at it and its start. Whom its group lets write there is
		// for whoever chose the folder to know.
		`guarded() { set -- "$1" $(ls -ldn "$1/." 2>/dev/null); case $2 in ????????w[tT]*) ;; ????????w*) return 1;; esac; ` +
		`test -O "$1" || test "$4" = 0; }; ` +
		// mine: the program is not somebody else's. In the user's own folders nobody else puts one.
		`mine() { case $1 in given) guarded "$2" && test -O "$3" || return 1;; shared) safe "$2" && test -O "$3" || return 1;; esac; }; ` +
		`proven() { test -f "$1" && test "$("$1" --sha256 2>/dev/null)" = "$g"; }; ` +
		`each() { ` + each.String() + `:; }; `
}

// say writes a line for us.
const say = `say() { echo; echo "` + wire.Magic + `$*"; }; `

// startScript becomes the agent, or says that it is missing and on what machine.
// programs maps Go's name of an architecture to the digest of its program.
func startScript(w way, f folders, programs map[string]string) string {
	proven := ""
	if w.careful {
		proven = ` && proven "$a"`
	}
	return f.script() + say + `m=$(uname -m 2>/dev/null || echo unknown); s=$(uname -s 2>/dev/null || echo unknown); g=; ` +
		`case "$s-$m" in ` +
		`Linux-x86_64|Linux-amd64) g="` + programs["amd64"] + `"; h="` + fileKey(programs["amd64"]) + `";; ` +
		`Linux-aarch64|Linux-arm64) g="` + programs["arm64"] + `"; h="` + fileKey(programs["arm64"]) + `";; ` +
		`esac; ` +
		`one() { a="$2/spark-agent-$h"; if test -f "$a" && test -x "$a" && mine "$1" "$2" "$a"` + proven + `; then exec "$a" serve; fi; }; ` +
		`if test -n "$g"; then each; fi; say missing $m $s`
}

// uploadScript stores its standard input as the agent's program in the first candidate, after the
// first skip ones, that takes it; proves it, and removes older ones. Nothing but a whole, proven
// program ever gets the name that startScript looks for. Where it is already, nothing is read.
// token makes the temporary file's name one of its own, also among nodes that share a home folder.
func uploadScript(f folders, digest, token string, size, skip int) string {
	// A connection that is cut without a word must not leave cat waiting for ever.
	reader := fmt.Sprintf(`c=cat; if timeout 9 true 2>/dev/null; then c="timeout %d cat"; fi; `, int(uploadTimeout.Seconds()))
	return f.script() + say + `umask 077; LC_ALL=C; export LC_ALL; d=; w=; i=0; g="` + digest + `"; ` + reader +
		`no() { w="${w:+$w; }$f ($*)"; }; ` +
		`one() { test -z "$d" || return 0; i=$((i+1)); test "$i" -gt ` + fmt.Sprint(skip) + ` || return 0; f=$2; ` +
		`case $1 in ` +
		`given) e=$(mkdir -p "$f" 2>&1) || { no $e; return 0; }; ` +
		`guarded "$f" || { no it belongs to somebody else or everybody may write to it; return 0; };; ` +
		`own) e=$({ mkdir -p "$f" && chmod 700 "$f"; } 2>&1) || { no $e; return 0; };; ` +
		`shared) if test -e "$f" || test -h "$f"; then :; else e=$(mkdir "$f" 2>&1) || { no $e; return 0; }; fi; ` +
		`safe "$f" || { no it is not a folder of this user alone; return 0; };; esac; ` +
		`t="$f/.upload-` + token + `"; e=$({ : > "$t"; } 2>&1) || { no cannot be written: $e; return 0; }; ` +
		// An empty program does nothing, unless nothing may run here.
		`e=$({ chmod 700 "$t" && "$t"; } 2>&1) || { rm -f "$t"; test "$1" = given || rmdir "$f" 2>/dev/null; no programs there may not be run: ${e##*: }; return 0; }; ` +
		`k=$1; d=$f; }; each; ` +
		`if test -z "$d"; then say unusable "${w:-HOME is not set, and there is no other place}"; exit 1; fi; ` +
		`cd "$d"; a="$d/spark-agent-` + fileKey(digest) + `"; trap "rm -f .upload-` + token + `" EXIT; trap "exit 1" HUP INT TERM; ` +
		`if proven "$a"; then say uploaded "$a"; exit 0; fi; ` +
		`e=$({ $c > "$t" && chmod 700 "$t"; } 2>&1) || { no cannot be written: $e; rm -f "$t"; test "$k" = given || rmdir "$d" 2>/dev/null; say unwritten $i "$w"; exit 1; }; ` +
		`e=$("$t" --sha256 2>&1); ` +
		`if test "$e" = "$g"; then :; else ` +
		`n=$(wc -c < "$t"); if test "$n" -eq ` + fmt.Sprint(size) + `; then say unrunnable "$t": $e; else say truncated $n "$t"; fi; exit 1; fi; ` +
		`if proven "$a"; then :; else e=$(mv -f "$t" "$a" 2>&1) || { no cannot be written: $e; say unwritten $i "$w"; exit 1; }; fi; ` +
		// Other providers may still use an older program, so it has a day.
		`find spark-agent-* .upload-* -prune -type f -mmin +1440 -exec rm -f {} + 2>/dev/null; say uploaded "$a"`
}

// fileKey is the part of a digest that names the program's file.
func fileKey(digest string) string { return digest[:min(12, len(digest))] }

// missing is the answer of startScript when there is no agent. It is an error, the only one that an
// upload cures.
type missing struct{ machine, system string }

// Error implements error.
func (m *missing) Error() string { return "the agent is not there" }

func parseMissing(text string) (*missing, bool) {
	fields := strings.Fields(text)
	if len(fields) != 3 || fields[0] != "missing" {
		return nil, false
	}
	return &missing{machine: fields[1], system: fields[2]}, true
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
	return "", &StartError{Kind: StartPlatform, Message: fmt.Sprintf(
		"the node runs %s on %s; the agent runs on Linux, on aarch64 (as a DGX Spark) or x86_64", m.system, m.machine)}
}
