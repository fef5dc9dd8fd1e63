package hosttest

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one change that the code under test made on a host.
type Entry struct {
	// Host is the host's name.
	Host string
	// Action is "create", "start", "stop", "kill", "remove", "exec", "create volume",
	// "remove volume", "write file", "delete file", "make folder" or "delete folder".
	Action string
	// Target is the container's or volume's name, with exec its command too, or the file's path.
	Target string
}

// String is the entry as one line.
func (e Entry) String() string { return e.Host + ": " + e.Action + " " + e.Target }

// fileMark tells one state of a file from another; of a folder only that it is there.
type fileMark struct {
	folder   bool
	size     int64
	modified time.Time
}

// Journal returns every change since the start or [Fleet.ResetJournal]: engine calls in order, then
// the files that are not as they were, sorted. Changes by a test's own hand are not in it.
func (f *Fleet) Journal() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries := slices.Clone(f.journal)
	for _, h := range f.hosts {
		present := h.scan()
		for _, path := range slices.Sorted(maps.Keys(present)) {
			if mark, ok := h.baseline[path]; !ok || mark != present[path] {
				entries = append(entries, Entry{Host: h.name, Action: present[path].action("write file", "make folder"), Target: path})
			}
		}
		for _, path := range slices.Sorted(maps.Keys(h.baseline)) {
			if _, ok := present[path]; !ok {
				action := h.baseline[path].action("delete file", "delete folder")
				entries = append(entries, Entry{Host: h.name, Action: action, Target: path})
			}
		}
	}
	return entries
}

func (m fileMark) action(file, folder string) string {
	if m.folder {
		return folder
	}
	return file
}

// ResetJournal forgets what happened so far.
func (f *Fleet) ResetJournal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.journal = nil
	for _, h := range f.hosts {
		h.baseline = h.scan()
	}
}

// note writes an entry. The lock is held.
func (h *Host) note(action, target string) {
	h.fleet.journal = append(h.fleet.journal, Entry{Host: h.name, Action: action, Target: target})
}

// scan marks every file below the host's root; the agent's own cache is left out.
func (h *Host) scan() map[string]fileMark {
	marks := map[string]fileMark{}
	err := filepath.WalkDir(h.root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Removed while we walk.
		}
		if err != nil {
			return err
		}
		if path == h.root {
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name := "/" + filepath.ToSlash(strings.TrimPrefix(path, h.root+string(filepath.Separator)))
		switch {
		case name == h.Home()+"/.cache/spark-stack":
			return fs.SkipDir
		case entry.IsDir():
			marks[name] = fileMark{folder: true}
		default:
			marks[name] = fileMark{size: info.Size(), modified: info.ModTime()}
		}
		return nil
	})
	if err != nil {
		h.fleet.t.Errorf("hosttest: walk %s: %v", h.root, err)
	}
	return marks
}

// byHand runs a change of files that shall not show in the journal.
func (h *Host) byHand(change func() error) error {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	before := h.scan()
	if err := change(); err != nil {
		return err
	}
	after := h.scan()
	for path, mark := range after {
		if old, ok := before[path]; !ok || old != mark {
			h.baseline[path] = mark
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			delete(h.baseline, path)
		}
	}
	return nil
}
