package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// ours matches the files that the client's scripts make in the agent's folder.
var ours = regexp.MustCompile(`^(spark-agent-[0-9a-f]{12}|\.upload-[0-9]+)$`)

// uninstall removes the agent's files and its folder, if nothing else is in it. A program that was
// not put there by an upload is not ours to remove.
func (s *server) uninstall(context.Context, struct{}) (struct{}, error) {
	executable := s.options.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return struct{}{}, fmt.Errorf("find the agent's own file: %w", err)
		}
	}
	folder, name := filepath.Split(executable)
	if !ours.MatchString(name) {
		return struct{}{}, fmt.Errorf("%s is not an uploaded agent", executable)
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return struct{}{}, nil // Somebody was faster.
	}
	if err != nil {
		return struct{}{}, s.denied(err)
	}
	var errs []error
	for _, entry := range entries {
		if !ours.MatchString(entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, s.denied(err))
		}
	}
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		errs = append(errs, s.denied(err))
	}
	return struct{}{}, errors.Join(errs...)
}
