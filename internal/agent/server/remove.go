package server

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// removed removes a file; one that is gone is no error.
func removed(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// removedEmpty removes a folder, unless something is in it; one that is gone is no error.
func removedEmpty(folder string) error {
	err := os.Remove(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}
