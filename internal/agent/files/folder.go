// Package files lists a folder of weights and proves each file as far as its own structure allows,
// without reading the tensors.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Partial is the folder, below one of weights, that holds unfinished copies.
const Partial = ".spark-partial"

// Absolute resolves a folder as a user writes it: absolute, or below "~/", the home folder.
func Absolute(folder, home string) (string, error) {
	if rest, found := strings.CutPrefix(folder, "~"); found && (rest == "" || rest[0] == '/') {
		if home == "" {
			return "", fmt.Errorf("%q is below the home folder, and the user has none", folder)
		}
		folder = home + rest
	}
	if !filepath.IsAbs(folder) {
		return "", fmt.Errorf("%q is not an absolute path", folder)
	}
	return filepath.Clean(folder), nil
}

// OpenFolder opens a folder, and nothing else: opening a pipe would wait for somebody to write to it.
func OpenFolder(path string) (*os.Root, error) {
	return os.OpenRoot(path + string(filepath.Separator))
}

// Escapes tells whether an operation of an os.Root failed because the path leads outside. The
// package os has no exported error for it; all its other failures are the system's.
func Escapes(err error) bool {
	var errno syscall.Errno
	return err != nil && !errors.As(err, &errno)
}
