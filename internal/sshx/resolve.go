package sshx

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// evaluatePatience bounds `ssh -G`: about 10 ms, but a Match exec in the configuration runs commands.
const evaluatePatience = 5 * time.Second

// resolve says what ssh_config has for a host. The ssh client itself is asked (`ssh -G`, which connects to
// nothing, but runs the commands of Match exec); where there is none, or it refuses, our own reading counts.
// A configuration that says nothing of interest costs no process.
func resolve(ctx context.Context, q query, configFile string) (settings, []string, error) {
	files, err := configFiles(configFile)
	if err != nil || len(files) == 0 {
		return settings{}, nil, err
	}
	own := evaluation{query: q}
	interesting := false
	for _, file := range files {
		directives, warnings := readConfig(file, 0)
		interesting = interesting || relevance(directives)
		own.warnings = append(own.warnings, warnings...)
		own.apply(directives, true)
	}
	if !interesting {
		return settings{}, own.warnings, nil
	}
	program := sshProgram()
	if program == "" {
		return own.settings, own.warnings, nil
	}
	asked, err := ask(ctx, program, q, configFile, files)
	if err != nil {
		if ctx.Err() != nil {
			return settings{}, nil, err
		}
		return own.settings, append(own.warnings, fmt.Sprintf("ssh cannot read its configuration, so that it was read without it: %v", err)), nil
	}
	return asked, nil, nil
}

// sshProgram is the path of the ssh client, empty if there is none.
func sshProgram() string {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return ""
	}
	return path
}

// ask runs `ssh -G`. Canonicalization is off: it would ask the network.
func ask(ctx context.Context, program string, q query, configFile string, files []string) (settings, error) {
	arguments := []string{"-G", "-T", "-o", "CanonicalizeHostname=no"}
	if configFile != "" || !atHome() {
		// ssh finds its home in the user database, the rest of us in HOME.
		path, err := filepath.Abs(files[0])
		if err != nil {
			return settings{}, err
		}
		arguments = append(arguments, "-F", path)
	}
	if q.user != "" {
		arguments = append(arguments, "-l", q.user)
	}
	if q.port != 0 {
		arguments = append(arguments, "-p", strconv.Itoa(q.port))
	}
	bounded, cancel := context.WithTimeout(ctx, evaluatePatience)
	defer cancel()
	command := exec.CommandContext(bounded, program, append(arguments, "--", q.host)...) //nolint:gosec // a host that looks like an option stays a host
	command.WaitDelay = time.Second
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		if bounded.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it took longer than %s", evaluatePatience)
		}
		return settings{}, fmt.Errorf("ssh -G: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return parseAnswer(string(output))
}

// atHome says whether HOME is what the user database has.
func atHome() bool {
	home, err := os.UserHomeDir()
	current, userErr := user.Current()
	return err == nil && userErr == nil && filepath.Clean(home) == filepath.Clean(current.HomeDir)
}

// parseAnswer reads what `ssh -G` prints: all options with their defaults, of which those that are only
// defaults are dropped again.
func parseAnswer(output string) (settings, error) {
	var s settings
	for line := range strings.Lines(output) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		arguments := []string{value}
		switch {
		case strings.HasSuffix(keyword, "knownhostsfile"):
			if arguments = strings.Fields(value); isDefaultKnownHosts(arguments) {
				continue
			}
		case keyword == "revokedhostkeys":
			arguments = strings.Fields(value)
		case keyword == "identitiesonly":
			s.identitiesOnly = isYes(value)
		}
		if err := s.set(keyword, arguments); err != nil {
			return settings{}, fmt.Errorf("the answer of ssh -G: %s: %w", keyword, err)
		}
	}
	if !slices.ContainsFunc(s.identityFiles, func(file string) bool { return !isDefaultKey(file) }) {
		s.identityFiles = nil
	}
	return s, nil
}

func isDefaultKnownHosts(files []string) bool {
	if len(files) != 2 || files[1] != files[0]+"2" {
		return false
	}
	return strings.HasSuffix(files[0], "/.ssh/known_hosts") || files[0] == "/etc/ssh/ssh_known_hosts"
}

func isDefaultKey(file string) bool {
	name, found := strings.CutPrefix(file, "~/.ssh/")
	return found && slices.Contains([]string{
		"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa",
	}, name)
}
