package engine

import (
	"fmt"
	"path"
	"strings"
)

// maxSocketPath is the longest path of a socket on Linux, in bytes: sun_path has 108, the last is zero.
const maxSocketPath = 107

// CheckSocket says what is wrong with the path of an engine's socket, as an [Error] of kind BadSocket
// without a host; nil if nothing is.
func CheckSocket(socket string) error {
	var wrong string
	scheme, rest, isURL := strings.Cut(socket, "://")
	switch {
	case isURL && scheme == "unix":
		wrong = fmt.Sprintf("%q is an address, not a path: write %q", socket, rest)
	case isURL:
		wrong = fmt.Sprintf("%q is not a socket: the engine is reached through a unix socket of the machine, over SSH", socket)
	case strings.HasPrefix(socket, "~"), strings.Contains(socket, "$"):
		wrong = fmt.Sprintf("%q is not expanded: write the whole path, for a rootless engine /run/user/<number>/docker.sock (id -u says the number)", socket)
	case !path.IsAbs(socket):
		wrong = fmt.Sprintf("%q is not an absolute path", socket)
	case len(socket) > maxSocketPath:
		wrong = fmt.Sprintf("%q has %d bytes, and the path of a socket has %d at most", socket, len(socket), maxSocketPath)
	case strings.ContainsRune(socket, 0):
		wrong = fmt.Sprintf("%q has a zero byte in it", socket)
	default:
		return nil
	}
	return &Error{Kind: BadSocket, Step: "open the engine's socket", Message: wrong}
}
