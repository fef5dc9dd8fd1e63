// Package agentfile writes the embedded agent to standard output, for nodes where an administrator puts it
// behind a forced command of sshd.
package agentfile

import (
	"fmt"
	"io"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

const usage = `Usage: terraform-provider-spark agent [linux/arm64|linux/amd64] > spark-agent

Writes the program that the provider runs on a node. Without an argument it is that for linux/arm64, as
on a DGX Spark. Put it on the node, executable and writable for root alone, and name it in the line of an
SSH key that may only look (~/.ssh/authorized_keys):

  restrict,command="/usr/local/bin/spark-agent serve --read-only" ssh-ed25519 AAAA... drift-check
`

// Run writes the program that the arguments name, and returns the exit code.
func Run(args []string, out, errOut io.Writer) int {
	platform := "linux/arm64"
	switch {
	case len(args) == 1 && !strings.HasPrefix(args[0], "-"):
		platform = args[0]
	case len(args) > 0:
		return say(errOut, usage)
	}
	architecture, found := strings.CutPrefix(platform, "linux/")
	if !found {
		return say(errOut, fmt.Sprintf("There is no agent for %s.\n\n%s", platform, usage))
	}
	program, err := embedded.Linux(architecture)
	if err != nil {
		return say(errOut, fmt.Sprintf("There is no agent for %s: %v\n", platform, err))
	}
	content, err := program.Bytes()
	if err != nil {
		return say(errOut, err.Error()+"\n")
	}
	if _, err := out.Write(content); err != nil {
		return say(errOut, fmt.Sprintf("The agent could not be written: %v\n", err))
	}
	return 0
}

// say explains what could not be done.
func say(errOut io.Writer, text string) int {
	_, _ = io.WriteString(errOut, text) // Where that fails there is nobody to tell.
	return 1
}
