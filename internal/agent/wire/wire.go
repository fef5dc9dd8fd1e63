// Package wire is what the two ends of the agent's connection agree on: the first line, the paths
// of the calls and the shape of a failure. It is all that client and server share besides the
// types of package agent.
package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The calls. Every one is a POST with a JSON body; Receive and Send answer with one JSON document a line.
const (
	PathFacts      = "/facts"
	PathContainers = "/containers"
	PathList       = "/list"
	PathDigest     = "/digest"
	PathReceive    = "/receive"
	PathSend       = "/send"
	PathClean      = "/clean"
	PathUninstall  = "/uninstall"
)

// What follows these prefixes is a request to the Docker engine, or to a program on the node, that the
// agent passes on if package filter allows it.
const (
	PrefixEngine  = "/engine"
	PrefixProgram = "/program"
)

// Headers beside them: the engine's socket, the program's address ("127.0.0.1:8000"), and in an answer
// the mark that it is the agent's own Failure and not what was asked for: its code, because the answer
// to a HEAD has no body.
const (
	HeaderSocket  = "Spark-Socket"
	HeaderTarget  = "Spark-Target"
	HeaderFailure = "Spark-Failure"
	// HeaderRayToken names a cluster whose token the agent puts in, beside a question to its GCS.
	HeaderRayToken = "X-Spark-Ray-Token" //nolint:gosec // A header's name, and no token.
)

// Magic starts each line that is meant for the client. What a login shell prints before it (the
// message of the day, an echo in .bashrc) is skipped, so it must not occur by chance; and it has
// no character that any shell would touch.
const Magic = "@spark-agent:3f9c1d@ "

// Hello is the first line of a running agent.
type Hello struct {
	Protocol     int    `json:"protocol"`
	Architecture string `json:"architecture"`
	// ReadOnly says that the agent answers questions only: a forced command of sshd started it so.
	ReadOnly bool `json:"read_only,omitempty"`
}

// Line formats the hello. The newline before it ends whatever a login shell left unfinished.
func (h Hello) Line() (string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("format the first line: %w", err)
	}
	return "\n" + Magic + "hello " + string(text) + "\n", nil
}

// ParseHello reads what follows the magic in a hello's line.
func ParseHello(text string) (Hello, bool) {
	rest, found := strings.CutPrefix(text, "hello ")
	var hello Hello
	if !found || json.Unmarshal([]byte(rest), &hello) != nil {
		return Hello{}, false
	}
	return hello, true
}

// Failure is the body of an answer whose status is not 200.
type Failure struct {
	// Code is one of the Transfer… and Refused… constants of package agent, or empty.
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

// FolderRequest is the body of Clean.
type FolderRequest struct {
	Folder string `json:"folder"`
}
