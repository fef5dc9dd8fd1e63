package hosttest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// load makes the program that a container's command line names. The lock is held.
func (h *Host) load(c *instance) program {
	words := unwrapShell(c.command())
	if i := indexOf(words, "ray", "start"); i >= 0 {
		return newRay(c, parseFlags(words[i+2:]))
	}
	if i := indexOf(words, "vllm", "serve"); i >= 0 {
		return newServer(c, parseFlags(words[i+2:]))
	}
	return &plain{instance: c, words: words}
}

// unwrapShell splits the script of `sh -c '…'` into words; scripts with quotes are beyond it.
func unwrapShell(words []string) []string {
	if len(words) < 3 || !strings.HasSuffix(filepath.Base(words[0]), "sh") {
		return words
	}
	return strings.Fields(strings.TrimPrefix(words[len(words)-1], "exec "))
}

// indexOf finds a program with its subcommand among words.
func indexOf(words []string, name, subcommand string) int {
	for i := 0; i+1 < len(words); i++ {
		if filepath.Base(words[i]) == name && words[i+1] == subcommand {
			return i
		}
	}
	return -1
}

// flags are the arguments of a program.
type flags struct {
	values     map[string][]string
	positional []string
}

// switches are the flags without a value that stand before a positional argument in no order.
var switches = []string{
	"--head", "--block", "--disable-usage-stats", "--enforce-eager", "--headless", "--trust-remote-code",
	"--enable-prefix-caching", "--enable-expert-parallel", "--enable-auto-tool-choice",
}

func parseFlags(words []string) flags {
	parsed := flags{values: map[string][]string{}}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") {
			parsed.positional = append(parsed.positional, word)
			continue
		}
		name, value, joined := strings.Cut(word, "=")
		if joined || slices.Contains(switches, name) {
			parsed.values[name] = append(parsed.values[name], value)
			continue
		}
		parsed.values[name] = append(parsed.values[name], "")
		for i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			list := parsed.values[name]
			if last := len(list) - 1; list[last] == "" {
				list[last] = words[i]
			} else {
				parsed.values[name] = append(list, words[i])
			}
		}
	}
	return parsed
}

func (f flags) has(name string) bool { _, ok := f.values[name]; return ok }

// text is the last value of the first of the names that was given.
func (f flags) text(fallback string, names ...string) string {
	for _, name := range names {
		if values := f.values[name]; len(values) > 0 {
			return values[len(values)-1]
		}
	}
	return fallback
}

// number is like text; what is no number is the fallback.
func (f flags) number(fallback int, names ...string) int {
	value, err := strconv.Atoi(f.text("", names...))
	if err != nil {
		return fallback
	}
	return value
}

// plain is any other command: answered by the runners, it ends at once; sleep and a bare shell stay.
type plain struct {
	instance *instance
	words    []string
	asked    bool
}

func (p *plain) step(time.Time) {
	if p.asked {
		return
	}
	p.asked = true
	c := p.instance
	if outcome, ok := c.host.respond(Invocation{
		Host: c.host, Container: c.name, Command: c.command(), Env: c.config.Env,
	}); ok {
		for line := range strings.Lines(outcome.Stdout) {
			c.logs = append(c.logs, logLine{at: time.Now(), text: strings.TrimSuffix(line, "\n")})
		}
		for line := range strings.Lines(outcome.Stderr) {
			c.logf("%s", strings.TrimSuffix(line, "\n"))
		}
		c.exit(outcome.ExitCode)
		return
	}
	if len(p.words) > 0 && !slices.Contains([]string{"sleep", "sh", "bash", "tail"}, filepath.Base(p.words[0])) {
		c.logf("exec: %q: executable file not found in $PATH", p.words[0])
		c.exit(127)
	}
}

func (p *plain) ports() []int                 { return nil }
func (p *plain) listens(string, int) *backlog { return nil }
func (p *plain) halt()                        {}
