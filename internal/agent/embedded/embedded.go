// Package embedded holds the agent's program for each architecture, compressed. The files are made
// by `go generate`; without them the package compiles and has no program to give.
package embedded

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

//go:generate go run ../embed .

// The pattern matches README.md, which is always there, and *.gz, which are there once generated;
// a pattern that matches nothing would not compile.
//
//go:embed *.[gm][dz]
var files embed.FS

// ErrMissing is the failure for an architecture that this build has no program for.
var ErrMissing = errors.New("this build carries no agent")

// Linux finds the program for an architecture by Go's name of it.
func Linux(architecture string) (Program, error) {
	program, err := open(func() (io.ReadCloser, error) { return files.Open("linux-" + architecture + ".gz") })
	if errors.Is(err, fs.ErrNotExist) {
		return Program{}, fmt.Errorf("%w for linux/%s: build it with `make build`", ErrMissing, architecture)
	}
	if err != nil {
		return Program{}, fmt.Errorf("the embedded agent for linux/%s: %w", architecture, err)
	}
	return program, nil
}
