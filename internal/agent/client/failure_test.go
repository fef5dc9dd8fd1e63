package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

// tool puts a script before the node's programs.
func (n *node) tool(name, script string) {
	n.t.Helper()
	folder := n.t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // It is run.
		n.t.Fatal(err)
	}
	n.path = folder + ":" + n.path
}

// login makes a script the login shell.
func (n *node) login(script string) {
	n.t.Helper()
	n.shell = filepath.Join(n.t.TempDir(), "shell")
	if err := os.WriteFile(n.shell, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // It is run.
		n.t.Fatal(err)
	}
}

func TestBootstrapFailures(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		prepare func(t *testing.T, n *node)
		find    finder
		kind    StartKind
		want    string
	}{
		"other processor": {
			prepare: func(_ *testing.T, n *node) { n.tool("uname", `case $1 in -m) echo riscv64;; *) echo Linux;; esac`) },
			kind:    StartPlatform,
			want:    "the node runs Linux on riscv64; the agent runs on Linux, on aarch64 (as a DGX Spark) or x86_64",
		},
		"other system": {
			prepare: func(_ *testing.T, n *node) { n.tool("uname", `case $1 in -m) echo arm64;; *) echo Darwin;; esac`) },
			kind:    StartPlatform,
			want:    "the node runs Darwin on arm64",
		},
		"no word of its system": {
			prepare: func(_ *testing.T, n *node) { n.tool("uname", "exit 127") },
			kind:    StartPlatform,
			want:    "the node runs unknown on unknown",
		},
		"not in this build": {
			find: func(string) (embedded.Program, error) { return embedded.Linux("none") },
			kind: StartNotBuilt,
			want: "this build carries no agent for linux/none: build it with `make build`",
		},
		"home is a file": {
			prepare: func(t *testing.T, n *node) {
				n.home = filepath.Join(n.home, "file")
				if err := os.WriteFile(n.home, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			kind: StartNoFolder,
			want: "file/.cache/spark-stack (mkdir: cannot create directory",
		},
		"no folder at all": {
			prepare: func(_ *testing.T, n *node) { n.home = "" },
			kind:    StartNoFolder,
			want:    "no folder on the node takes it: HOME is not set, and there is no other place",
		},
		"cut on the way": {
			prepare: func(_ *testing.T, n *node) { n.tool("cat", "exec head -c 1000") },
			kind:    StartCut,
			want:    "1000 of ",
		},
		"no execution": {
			prepare: func(_ *testing.T, n *node) {
				n.tool("chmod", `case $2 in */.upload-*) exec /bin/chmod 600 $2;; esac; exec /bin/chmod $*`)
			},
			kind: StartNoFolder,
			want: "spark-stack (programs there may not be run: Permission denied)",
		},
		"arrived and refused": {
			// As a list of allowed programs does: what is empty runs, what is there for the first time does not.
			prepare: func(_ *testing.T, n *node) {
				n.tool("chmod", `if test -s "$2"; then exec /bin/chmod 600 "$2"; fi; exec /bin/chmod $*`)
			},
			kind: StartUnrunnable,
			want: "the program arrived whole and does not run there: ",
		},
		"full": {
			prepare: func(_ *testing.T, n *node) {
				n.tool("cat", "head -c 1000; echo cat: write error: No space left on device >&2; exit 1")
			},
			kind: StartNoFolder,
			want: "spark-stack (cannot be written: cat: write error: No space left on device)",
		},
		"something cleans": {
			prepare: func(_ *testing.T, n *node) { n.tool("mv", `rm "$2"`) },
			kind:    StartCleaned,
			want:    "was uploaded, and is not there now",
		},
		"no login": {
			prepare: func(_ *testing.T, n *node) { n.login("echo This account is not available.\nexit 1") },
			kind:    StartNoAnswer,
			want:    "no answer from the agent (exit code 1); the node said: no newline at the endThis account is not available.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			if test.prepare != nil {
				test.prepare(t, n)
			}
			if test.find == nil {
				test.find = carries(runtime.GOARCH, built)
			}
			_, err := start(t.Context(), "spark-a", n, test.find, n.options())
			var failed *StartError
			if !errors.As(err, &failed) || failed.Kind != test.kind || !strings.Contains(err.Error(), test.want) || failed.Advice() == "" {
				t.Errorf("got %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(n.home, ".cache/spark-stack/*"))
			hidden, _ := filepath.Glob(filepath.Join(n.home, ".cache/spark-stack/.u*"))
			if left = slices.Concat(left, hidden); len(left) != 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func TestStartIsAnAgentError(t *testing.T) {
	starter := StarterFunc(func(context.Context, string) (*Process, error) { return nil, errors.New("no session") })
	_, err := Start(t.Context(), "spark-a", starter, Options{})
	var failed *agent.Error
	if !errors.As(err, &failed) || err.Error() != "spark-a: start the agent: no session" {
		t.Errorf("got %v", err)
	}
}
