package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
)

// workspace is a Terraform configuration in a folder of its own.
type workspace struct {
	dir         string
	environment []string
}

// providerVersion is only a name here: the mirror has one version.
const providerVersion = "0.0.1"

// mirror lays the provider's program into a mirror of the file system, as an installed one is, and
// returns the CLI configuration that makes Terraform use nothing else.
func mirror(dir, provider string) (rc string, err error) {
	folder := filepath.Join(dir, "mirror", "registry.terraform.io", "spark-stack", "spark", providerVersion, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	program, err := os.ReadFile(provider)
	if err != nil {
		return "", fmt.Errorf("read the provider; make build makes it: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "terraform-provider-spark_v"+providerVersion), program, 0o700); err != nil { //nolint:gosec // a program must be executable
		return "", err
	}
	rc = filepath.Join(dir, "terraform.rc")
	content := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(dir, "mirror"))
	return rc, os.WriteFile(rc, []byte(content), 0o600)
}

// cleanEnvironment is ours without what would change what Terraform and the provider do.
func cleanEnvironment() []string {
	var kept []string
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "TF_") && !strings.HasPrefix(one, "SPARK_") {
			kept = append(kept, one)
		}
	}
	return kept
}

// write makes the folder and its configuration from a template.
func (w workspace) write(from fs.FS, name string, values any) error {
	parsed, err := template.ParseFS(from, name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o750); err != nil {
		return err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, values); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(text.String()), 0o600)
}

// initialized says whether terraform init has run there.
func (w workspace) initialized() bool {
	if w.dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(w.dir, ".terraform.lock.hcl"))
	return err == nil
}

// run runs Terraform and returns its exit code and output; an error is a Terraform that did not run.
func (w workspace) run(ctx context.Context, arguments ...string) (code int, output string, err error) {
	command := exec.CommandContext(ctx, "terraform", append([]string{"-chdir=" + w.dir}, arguments...)...) //nolint:gosec // the arguments are our own
	command.Env = w.environment
	// Kindly: it passes the signal on to the provider, which stores what is.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	content, err := command.CombinedOutput()
	var exited *exec.ExitError
	if errors.As(err, &exited) && ctx.Err() == nil {
		return exited.ExitCode(), string(content), nil
	}
	return 0, string(content), err
}

// must runs Terraform and takes any exit code but 0 as an error.
func (w workspace) must(ctx context.Context, arguments ...string) error {
	code, output, err := w.run(ctx, append(arguments, "-no-color")...)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return fmt.Errorf("terraform %s: %w: %s", arguments[0], err, tail(output))
	}
	return nil
}
