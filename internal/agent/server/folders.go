package server

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// shown resolves a folder that is to be looked at: how messages call it, and where it lies. A forced
// command may name the folders that it shows.
func (o Options) shown(requested string) (named, real string, err error) {
	named, real, err = o.folder(requested)
	if err != nil || !o.ReadOnly || len(o.Folders) == 0 {
		return named, real, err
	}
	asked, err := resolved(real)
	if err != nil {
		return named, real, err
	}
	for _, folder := range o.Folders {
		_, allowed, err := o.folder(folder)
		if err != nil {
			return named, real, err
		}
		if allowed, err = resolved(allowed); err != nil {
			return named, real, err
		}
		if below, err := filepath.Rel(allowed, asked); err == nil && filepath.IsLocal(below) {
			return named, real, nil
		}
	}
	return named, real, &refusal{code: agent.RefusedFilter, err: fmt.Errorf(
		"this SSH key's line in authorized_keys shows the folders %s, and %s was asked for; add --folder %s to the command in that line",
		strings.Join(o.Folders, ", "), named, named)}
}

// resolved follows the links in a path, as far as it exists: a link must not lead out of what is shown.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	parent, err := resolved(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}
