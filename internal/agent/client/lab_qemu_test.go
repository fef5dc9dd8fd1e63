//go:build lab

package client_test

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

// TestLabARM64 runs the program that a DGX Spark gets, on an emulated processor, through all that a
// plan asks: a start, the facts and a listing of weights.
func TestLabARM64(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Fatal("qemu-aarch64 is missing: install qemu-user")
	}
	embeddedProgram, err := embedded.Linux("arm64")
	if err != nil {
		t.Fatal(err)
	}
	content, err := embeddedProgram.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "spark-agent")
	if err := os.WriteFile(program, content, 0o700); err != nil { //nolint:gosec // It is run.
		t.Fatal(err)
	}
	if digest, err := exec.CommandContext(t.Context(), qemu, program, "--sha256").Output(); err != nil || len(digest) != 65 {
		t.Fatalf("--sha256: %q, %v", digest, err)
	}
	helper, err := client.Start(t.Context(), "spark-a", emulated(t, qemu, program), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := helper.Facts(t.Context())
	if err != nil || facts.Architecture != "arm64" || facts.Memory.Total == 0 || len(facts.Interfaces) == 0 || facts.User.Name == "" {
		t.Errorf("facts: %+v, %v", facts, err)
	}
	for _, unread := range facts.Unread {
		t.Logf("not read under emulation: %s", unread)
	}
	listing, err := helper.List(t.Context(), agent.ListRequest{Folder: weights(t)})
	if err != nil || !listing.Exists || len(listing.Files) != 2 {
		t.Errorf("listing: %+v, %v", listing, err)
	}
	for _, file := range listing.Files {
		if file.Size == 0 {
			t.Errorf("%s is listed without its size", file.Name)
		}
	}
	if err := helper.Close(); err != nil {
		t.Error(err)
	}
}

// emulated is a node whose every command is the agent's program under the emulator.
func emulated(t *testing.T, qemu, program string) client.Starter {
	t.Helper()
	return client.StarterFunc(func(context.Context, string) (*client.Process, error) {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), qemu, program, "serve")
		stdin, err := command.StdinPipe()
		if err != nil {
			return nil, err
		}
		stdout, err := command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		command.Stderr = t.Output()
		if err := command.Start(); err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = command.Process.Kill() })
		return &client.Process{
			Stdin: stdin, Stdout: stdout, Stderr: func() string { return "" },
			Wait: func() (int, error) {
				state, err := command.Process.Wait()
				if err != nil {
					return -1, err
				}
				return state.ExitCode(), nil
			},
			Close: command.Process.Kill,
		}, nil
	})
}

// weights is a folder with a model of one small shard.
func weights(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	header := []byte(`{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`)
	shard := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	shard = append(shard, make([]byte, 16)...)
	for name, content := range map[string][]byte{"config.json": []byte("{}"), "model.safetensors": shard} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
