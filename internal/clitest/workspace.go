// Package clitest drives the real Terraform CLI with the built provider, for tests that must see
// what a person or a CI job sees: exit codes, plans, state.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// commandLimit bounds one terraform command: a deployment in the lab is ready within two minutes.
const commandLimit = 5 * time.Minute

// Workspace is one folder with a configuration and its state.
type Workspace struct {
	t         testing.TB
	Dir       string
	env       []string
	terraform string
}

// Result is what a finished command left.
type Result struct {
	Exit   int
	Stdout string
	Stderr string
	Took   time.Duration
}

// Text is all that was printed.
func (r Result) Text() string { return r.Stdout + r.Stderr }

// New makes a workspace with a main.tf. env is added to the environment of every command.
func New(t testing.TB, config string, env map[string]string) *Workspace {
	t.Helper()
	w := &Workspace{t: t, Dir: t.TempDir(), terraform: terraformPath(t)}
	rc := filepath.Join(w.Dir, "terraform.rc")
	w.write(rc, fmt.Sprintf("provider_installation {\n  dev_overrides { \"spark-stack/spark\" = %q }\n  direct {}\n}\n", filepath.Dir(providerBinary(t))))
	w.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_INPUT=0")
	for name, value := range env {
		w.env = append(w.env, name+"="+value)
	}
	w.Config(config)
	return w
}

// In is the same workspace for a subtest: failures belong to it.
func (w *Workspace) In(t testing.TB) *Workspace {
	same := *w
	same.t = t
	return &same
}

// Config replaces main.tf; the requirement of the provider is added.
func (w *Workspace) Config(config string) {
	w.t.Helper()
	w.write(filepath.Join(w.Dir, "main.tf"), "terraform {\n  required_providers {\n    spark = { source = \"spark-stack/spark\" }\n  }\n}\n"+config)
}

func (w *Workspace) write(path, content string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// Command prepares a terraform command, for tests that interrupt it.
func (w *Workspace) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, w.terraform, args...)
	command.Dir = w.Dir
	command.Env = w.env
	return command
}

// Run runs terraform and returns whatever happened.
func (w *Workspace) Run(args ...string) Result {
	w.t.Helper()
	// Not the test's own context: a clean-up runs commands too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), commandLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := w.Command(ctx, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	begin := time.Now()
	err := command.Run()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(begin)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.Exit = exit.ExitCode()
	case err != nil:
		w.t.Fatalf("terraform %s: %v", strings.Join(args, " "), err)
	}
	if ctx.Err() != nil {
		w.t.Fatalf("terraform %s did not end within %s:\n%s", strings.Join(args, " "), commandLimit, result.Text())
	}
	return result
}

// Apply applies and expects success.
func (w *Workspace) Apply(args ...string) Result {
	w.t.Helper()
	result := w.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	if result.Exit != 0 {
		w.t.Fatalf("apply: exit %d\n%s", result.Exit, result.Text())
	}
	return result
}

// ApplyFails applies, expects an error, and returns what was printed with line breaks and the
// error's frame taken out, so that sentences can be searched.
func (w *Workspace) ApplyFails(args ...string) string {
	w.t.Helper()
	result := w.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	if result.Exit == 0 {
		w.t.Fatalf("apply succeeded, an error was expected\n%s", result.Text())
	}
	return Unwrap(result.Text())
}

// ApplyPlanned applies what the last Plan saved, as a pipeline does after its review.
func (w *Workspace) ApplyPlanned() Result {
	w.t.Helper()
	return w.Apply("planned")
}

// ApplyPlannedFails is ApplyFails for the saved plan.
func (w *Workspace) ApplyPlannedFails() string {
	w.t.Helper()
	return w.ApplyFails("planned")
}

// Destroy destroys and expects success.
func (w *Workspace) Destroy() Result {
	w.t.Helper()
	result := w.Run("destroy", "-auto-approve", "-no-color")
	if result.Exit != 0 {
		w.t.Fatalf("destroy: exit %d\n%s", result.Exit, result.Text())
	}
	return result
}

// Unwrap joins the lines that Terraform wrapped.
func Unwrap(text string) string {
	text = strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

var buildOnce = sync.OnceValues(func() (string, error) {
	if known := os.Getenv("SPARK_PROVIDER_BINARY"); known != "" {
		return known, nil
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "build", "test")
	binary := filepath.Join(dir, "terraform-provider-spark")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = strings.TrimSpace(string(root))
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the provider: %w\n%s", err, output)
	}
	return binary, nil
})

// providerBinary builds the provider once per test binary, or takes SPARK_PROVIDER_BINARY.
func providerBinary(t testing.TB) string {
	t.Helper()
	binary, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func terraformPath(t testing.TB) string {
	t.Helper()
	if known := os.Getenv("TF_ACC_TERRAFORM_PATH"); known != "" {
		return known
	}
	found, err := exec.LookPath("terraform")
	if err != nil {
		t.Fatal("the Terraform CLI is needed: install terraform 1.11 or newer, or set TF_ACC_TERRAFORM_PATH")
	}
	return found
}
