package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// maxSecret bounds a secret, in bytes.
const maxSecret = 4096

// secretName keeps a name below the folder of secrets: plain words, no dot at the front.
var secretName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*$`)

// secretPath is where a secret lies, and the folder of all of them.
func (s *server) secretPath(name string) (path, folder string, err error) {
	if !secretName.MatchString(name) {
		return "", "", fmt.Errorf("%q is not the name of a secret", name)
	}
	_, home := s.options.account()
	folder = filepath.Join(s.options.PathRoot, home, agent.SecretFolder)
	return filepath.Join(folder, name), folder, nil
}

func (s *server) readSecret(_ context.Context, request wire.SecretRequest) (wire.SecretAnswer, error) {
	path, _, err := s.secretPath(request.Name)
	if err != nil {
		return wire.SecretAnswer{}, err
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return wire.SecretAnswer{}, nil
	}
	return wire.SecretAnswer{Value: strings.TrimSpace(string(content)), Found: err == nil}, s.denied(err)
}

// writeSecret writes beside the file and renames: a container that has the folder mounted never sees
// half of it.
func (s *server) writeSecret(_ context.Context, request wire.SecretRequest) (struct{}, error) {
	path, _, err := s.secretPath(request.Name)
	switch {
	case err != nil:
		return struct{}{}, err
	case request.Value == "" || len(request.Value) > maxSecret:
		return struct{}{}, fmt.Errorf("a secret has 1 to %d bytes", maxSecret)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return struct{}{}, s.denied(err)
	}
	unfinished := unfinishedSecret(path)
	if err := removed(unfinished); err != nil {
		return struct{}{}, s.denied(err)
	}
	if err := create(unfinished, request.Value); err != nil {
		return struct{}{}, errors.Join(s.denied(err), removed(unfinished))
	}
	return struct{}{}, s.denied(os.Rename(unfinished, path))
}

// create writes a file that is not there yet: through a link, or into what somebody else has open, a
// secret would go to others.
func create(path, content string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Close())
}

// unfinishedSecret is the file beside a secret while it is written; no secret can have its name.
func unfinishedSecret(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
}

func (s *server) removeSecret(_ context.Context, request wire.SecretRequest) (struct{}, error) {
	path, folder, err := s.secretPath(request.Name)
	if err != nil {
		return struct{}{}, err
	}
	if err := errors.Join(removed(path), removed(unfinishedSecret(path))); err != nil {
		return struct{}{}, s.denied(err)
	}
	for parent := filepath.Dir(path); strings.HasPrefix(parent, folder); parent = filepath.Dir(parent) {
		if err := removedEmpty(parent); err != nil {
			return struct{}{}, s.denied(err)
		}
	}
	return struct{}{}, nil
}
