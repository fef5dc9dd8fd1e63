package hosttest

import (
	"fmt"
	"os"
	"strings"
)

// exitNotFound is a shell's code for a command that does not exist.
const exitNotFound = 127

// Shell makes the host answer a command line of an SSH session, as a test wants it. Whatever
// contains the text counts; the last added is asked first.
func (h *Host) Shell(contains string, outcome Outcome) {
	h.change(func() { h.answers = append([]shellAnswer{{contains, outcome}}, h.answers...) })
}

// shellAnswer is a prepared answer.
type shellAnswer struct {
	contains string
	outcome  Outcome
}

// shell runs the command line of a session.
func (h *Host) shell(line string) Outcome {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.fleet.settle()
	for _, answer := range h.answers {
		if strings.Contains(line, answer.contains) {
			return answer.outcome
		}
	}
	return h.runShell(line)
}

// command runs one simple command. The lock is held.
func (h *Host) command(words []string) Outcome {
	say := func(format string, values ...any) Outcome {
		return Outcome{Stdout: fmt.Sprintf(format, values...) + "\n"}
	}
	switch line := strings.Join(words, " "); {
	case (words[0] == "sh" || words[0] == "bash") && len(words) == 3 && words[1] == "-c":
		return h.runShell(words[2])
	case words[0] == "test":
		return h.test(words[1:])
	case words[0] == "[" && words[len(words)-1] == "]":
		return h.test(words[1 : len(words)-1])
	case words[0] == "echo":
		return say("%s", strings.Join(words[1:], " "))
	case line == "true", line == ":":
		return Outcome{}
	case line == "false":
		return Outcome{ExitCode: 1}
	case line == "hostname":
		return say("%s", h.name)
	case line == "uname -m":
		return say("aarch64")
	case line == "uname -s":
		return say("Linux")
	case line == "id -un", line == "whoami":
		return say(User)
	case line == "id -u":
		return say("1000")
	case line == "id -nG", line == "id -Gn", line == "groups":
		return say("%s", strings.Join(h.groups(), " "))
	}
	return Outcome{ExitCode: exitNotFound, Stderr: fmt.Sprintf("sh: 1: %s: not found\n", words[0])}
}

// test is test(1) with one unary operator on a path.
func (h *Host) test(words []string) Outcome {
	if len(words) != 2 {
		return Outcome{ExitCode: 2, Stderr: "sh: 1: test: not simulated\n"}
	}
	path := words[1]
	info, err := os.Stat(h.Path(path))
	socket := (path == dockerSocket || path == "/run/docker.sock") && !h.fault.engineDown
	yes := false
	switch words[0] {
	case "-S":
		yes = socket
	case "-e":
		yes = socket || err == nil
	case "-w", "-r":
		yes = (socket && !h.fault.denySocket) || err == nil
	case "-f":
		yes = err == nil && info.Mode().IsRegular()
	case "-d":
		yes = err == nil && info.IsDir()
	case "-n":
		yes = path != ""
	case "-z":
		yes = path == ""
	}
	if yes {
		return Outcome{}
	}
	return Outcome{ExitCode: 1}
}

// groups of the login user.
func (h *Host) groups() []string {
	if h.fault.denySocket {
		return []string{User, "sudo"}
	}
	return []string{User, "sudo", "docker"}
}
