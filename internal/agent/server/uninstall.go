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
	"syscall"
)

// ours matches the files that the client's scripts make in the agent's folder.
var ours = regexp.MustCompile(`^(spark-agent-[0-9a-f]{12}|\.upload-[0-9a-f]+)$`)

// ourFolder matches the names of folders that the client's scripts make; one that the user chose stays.
var ourFolder = regexp.MustCompile(`^spark-stack(-[0-9]+)?$`)

// uninstall removes the agent's files and its folders, if nothing else is in them: this one, and those
// where an upload went while this one could not be used. A program that was not put there by an upload
// is not ours to remove.
func (s *server) uninstall(context.Context, struct{}) (struct{}, error) {
	executable, others := s.options.Executable, []string(nil)
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return struct{}{}, fmt.Errorf("find the agent's own file: %w", err)
		}
		others = usualFolders(os.Getenv, os.Getuid())
	}
	// Whose file is removed already, by another provider, is named so by the kernel.
	folder, name := filepath.Split(strings.TrimSuffix(executable, " (deleted)"))
	if !ours.MatchString(name) {
		return struct{}{}, fmt.Errorf("%s is not an uploaded agent", executable)
	}
	errs := []error{s.clear(folder)}
	for _, other := range others {
		// Of a link, or of what belongs to somebody else, nothing is ours.
		if info, err := os.Lstat(other); err == nil && info.IsDir() && owner(info) == os.Getuid() {
			errs = append(errs, s.clear(other))
		}
	}
	return struct{}{}, errors.Join(errs...)
}

// usualFolders are the candidates of the client's scripts.
func usualFolders(environment func(string) string, uid int) []string {
	var folders []string
	for _, place := range [][2]string{{"XDG_CACHE_HOME", ""}, {"HOME", ".cache"}, {"XDG_RUNTIME_DIR", ""}} {
		if base := environment(place[0]); filepath.IsAbs(base) {
			folders = append(folders, filepath.Join(base, place[1], "spark-stack"))
		}
	}
	for _, shared := range []string{"/var/tmp", "/dev/shm"} {
		folders = append(folders, fmt.Sprintf("%s/spark-stack-%d", shared, uid))
	}
	return folders
}

func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// clear removes our files from a folder, and the folder if it is ours and empty then.
func (s *server) clear(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Somebody was faster.
	}
	if err != nil {
		return s.denied(err)
	}
	var errs []error
	for _, entry := range entries {
		if ours.MatchString(entry.Name()) {
			errs = append(errs, s.denied(removed(filepath.Join(folder, entry.Name()))))
		}
	}
	if ourFolder.MatchString(filepath.Base(folder)) {
		errs = append(errs, s.denied(removedEmpty(folder)))
	}
	return errors.Join(errs...)
}
