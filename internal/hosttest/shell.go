package hosttest

import (
	"strings"
)

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

// shell answers the one-liners by which the product finds out what is wrong. False: no such command.
func (h *Host) shell(command string) (Outcome, bool) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	for _, answer := range h.answers {
		if strings.Contains(command, answer.contains) {
			return answer.outcome, true
		}
	}
	line := strings.TrimSpace(command)
	if script, ok := strings.CutPrefix(line, "sh -c "); ok {
		line = strings.Trim(script, `'"`)
	}
	outcome := Outcome{}
	for part := range strings.SplitSeq(line, ";") {
		next, ok := h.conjunction(strings.TrimSpace(part))
		if !ok {
			return Outcome{}, false
		}
		outcome.Stdout += next.Stdout
		outcome.ExitCode = next.ExitCode
	}
	return outcome, true
}

// conjunction answers `a && b || c` from left to right.
func (h *Host) conjunction(line string) (Outcome, bool) {
	total := Outcome{}
	for alternative := range strings.SplitSeq(line, "||") {
		total.ExitCode = 0
		for part := range strings.SplitSeq(alternative, "&&") {
			next, ok := h.simple(strings.Fields(part))
			if !ok {
				return Outcome{}, false
			}
			total.Stdout += next.Stdout
			total.ExitCode = next.ExitCode
			if next.ExitCode != 0 {
				break
			}
		}
		if total.ExitCode == 0 {
			break
		}
	}
	return total, true
}

func (h *Host) simple(words []string) (Outcome, bool) {
	for i := range words {
		words[i] = strings.Trim(words[i], `'"`)
	}
	succeed := func(yes bool) (Outcome, bool) {
		if yes {
			return Outcome{}, true
		}
		return Outcome{ExitCode: 1}, true
	}
	switch strings.Join(words, " ") {
	case "true", ":":
		return succeed(true)
	case "false":
		return succeed(false)
	case "hostname":
		return Outcome{Stdout: h.name + "\n"}, true
	case "uname -m":
		return Outcome{Stdout: "aarch64\n"}, true
	case "id -un", "whoami":
		return Outcome{Stdout: User + "\n"}, true
	case "id -nG", "id -Gn", "groups":
		return Outcome{Stdout: strings.Join(h.groups(), " ") + "\n"}, true
	case "id -u":
		return Outcome{Stdout: "1000\n"}, true
	}
	switch {
	case len(words) > 0 && words[0] == "echo":
		return Outcome{Stdout: strings.Join(words[1:], " ") + "\n"}, true
	case len(words) == 3 && words[0] == "test", len(words) == 4 && words[0] == "[" && words[3] == "]":
		socket := words[2] == dockerSocket || words[2] == "/run/docker.sock"
		switch words[1] {
		case "-S", "-e":
			return succeed(socket && !h.fault.engineDown)
		case "-w", "-r":
			return succeed(socket && !h.fault.engineDown && !h.fault.denySocket)
		}
	}
	return Outcome{}, false
}

// groups of the login user.
func (h *Host) groups() []string {
	if h.fault.denySocket {
		return []string{User, "sudo"}
	}
	return []string{User, "sudo", "docker"}
}
