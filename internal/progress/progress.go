// Package progress tells other programs of this user how far a long act is: the provider writes it to a file of
// the user's cache folder, and `terraform-provider-spark watch` shows it. Terraform itself shows nothing of it.
package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// every is the least time between two writes that no event forces.
	every = 250 * time.Millisecond
	// beat is how often a running act is written although nothing happens.
	beat = 2 * time.Second
	// Silence is after how long without a write the process is taken for dead.
	Silence = 15 * time.Second
	// keep is how long the file of an ended act stays for who looks later.
	keep = time.Hour
)

// Act is one long act of one process.
type Act struct {
	// Thing is what is acted on: "vllm_deployment tiny".
	Thing   string    `json:"thing"`
	Process int       `json:"process"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	// Phase is what happens now, in words.
	Phase string `json:"phase"`
	Ended bool   `json:"ended"`
	// Error is the first line of why it failed.
	Error  string `json:"error,omitempty"`
	Copies []Copy `json:"copies,omitempty"`
}

// Copy is what one node receives.
type Copy struct {
	Host string `json:"host"`
	// From is the node that sends now, File what came last.
	From string `json:"from,omitempty"`
	File string `json:"file,omitempty"`
	// Bytes of Total, and Files of TotalFiles, are there.
	Bytes      int64 `json:"bytes"`
	Total      int64 `json:"total"`
	Files      int   `json:"files"`
	TotalFiles int   `json:"total_files"`
	// Rate in bytes per second, and Left in seconds at that rate; 0 while not known.
	Rate float64 `json:"rate"`
	Left float64 `json:"left"`
}

// Folder is where the files of this user lie.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder of the user: %w", err)
	}
	return filepath.Join(cache, "terraform-provider-spark", "progress"), nil
}

// Writer keeps the file of one act. It never fails an act: what cannot be written is not shown. Its methods may
// be called at once.
type Writer struct {
	path string
	lock sync.Mutex
	act  Act
	stop chan struct{}
	once sync.Once
}

var notForNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Start begins an act; an empty folder is one that could not be found, and nothing is written.
func Start(folder, thing string) *Writer {
	now := time.Now()
	w := &Writer{stop: make(chan struct{}), act: Act{Thing: thing, Process: os.Getpid(), Started: now, Phase: "begins"}}
	if folder != "" && os.MkdirAll(folder, 0o700) == nil {
		tidy(folder, now)
		w.path = filepath.Join(folder, fmt.Sprintf("%d-%s.json", w.act.Process, notForNames.ReplaceAllString(thing, "-")))
	}
	w.change(true, func(*Act) {})
	go w.beat()
	return w
}

// beat writes while nothing happens, so that a reader can tell a quiet process from a dead one.
func (w *Writer) beat() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
			w.change(false, func(*Act) {})
		}
	}
}

// Phase says what happens now.
func (w *Writer) Phase(phase string) { w.change(true, func(act *Act) { act.Phase = phase }) }

// Copies says how far the copies are.
func (w *Writer) Copies(phase string, copies []Copy) {
	w.change(false, func(act *Act) { act.Phase, act.Copies = phase, slices.Clone(copies) })
}

// End ends the act, with its failure.
func (w *Writer) End(err error) {
	w.once.Do(func() { close(w.stop) })
	w.change(true, func(act *Act) {
		act.Ended = true
		if err != nil {
			act.Error, _, _ = strings.Cut(err.Error(), "\n")
		}
	})
}

func (w *Writer) change(now bool, change func(*Act)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.act.Ended {
		return
	}
	change(&w.act)
	at := time.Now()
	if w.path == "" || (!now && at.Sub(w.act.Updated) < every) {
		return
	}
	w.act.Updated = at
	// A reader sees the file of before or that of after; what fails here is only not shown.
	if text, err := json.Marshal(w.act); err == nil && os.WriteFile(w.path+".new", text, 0o600) == nil {
		_ = os.Rename(w.path+".new", w.path)
	}
}

// tidy removes the files of acts that ended long ago.
func tidy(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > keep {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

// Read gives the acts in a folder, the oldest first.
func Read(folder string) ([]Act, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var acts []Act
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var act Act
		if json.Unmarshal(text, &act) == nil { // Another version's file is not ours to judge.
			acts = append(acts, act)
		}
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return a.Started.Compare(b.Started) })
	return acts, nil
}

// Running says whether an act still goes on at a time: it has not ended, and its process lives.
func (a Act) Running(now time.Time) bool { return !a.Ended && now.Sub(a.Updated) < Silence }
