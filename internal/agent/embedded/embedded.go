// Package embedded holds the agent's program for each architecture, compressed. The files are made
// by `go generate`; without them the package compiles and has no program to give.
package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
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

// Program is the agent for one architecture.
type Program struct {
	// SHA256 is the hex digest of the program, which names its file on a node.
	SHA256     string
	compressed []byte
}

// Linux finds the program for an architecture by Go's name of it.
func Linux(architecture string) (Program, error) {
	compressed, err := files.ReadFile("linux-" + architecture + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return Program{}, fmt.Errorf("%w for linux/%s: build it with `make build`", ErrMissing, architecture)
	}
	if err != nil {
		return Program{}, fmt.Errorf("read the embedded agent: %w", err)
	}
	// The digest stands in the gzip header, so that a start need not unpack the program to name it.
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return Program{}, fmt.Errorf("read the embedded agent for linux/%s: %w", architecture, err)
	}
	if digest, err := hex.DecodeString(reader.Comment); err != nil || len(digest) != sha256.Size {
		return Program{}, fmt.Errorf("the embedded agent for linux/%s has no digest in its header", architecture)
	}
	return Program{SHA256: reader.Comment, compressed: compressed}, nil
}

// Bytes unpacks the program and proves it by its digest.
func (p Program) Bytes() ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(p.compressed))
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded agent: %w", err)
	}
	program, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded agent: %w", err)
	}
	if digest := sha256.Sum256(program); hex.EncodeToString(digest[:]) != p.SHA256 {
		return nil, errors.New("the embedded agent does not match its digest")
	}
	return program, nil
}
