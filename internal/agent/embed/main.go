// Command embed builds the agent for each architecture and packs it for package embedded. The same
// source and the same Go give the same bytes, so that a node keeps its agent until the agent changes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

const program = "github.com/spark-stack/terraform-provider-spark/cmd/spark-agent"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed FOLDER")
		os.Exit(2)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		if err := pack(context.Background(), architecture, os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "embed: linux/%s: %v\n", architecture, err)
			os.Exit(1)
		}
	}
}

func pack(ctx context.Context, architecture, folder string) error {
	work, err := os.MkdirTemp("", "spark-agent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // A left-over temporary folder harms nothing.

	// Without -buildvcs=false each commit would make another program of the same source.
	binary := filepath.Join(work, "spark-agent")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid=", "-o", binary, program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	packed, err := embedded.Pack(content)
	if err != nil {
		return err
	}
	return replace(filepath.Join(folder, "linux-"+architecture+".gz"), packed)
}

// replace writes a file whole or not at all: another build may be reading it.
func replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".embed-")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	// A build product is for all to read.
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
