package progress

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWriteAndRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "progress")
	if acts, err := Read(folder); err != nil || acts != nil {
		t.Errorf("no folder: %v, %v", acts, err)
	}
	first := Start(folder, "vllm_deployment tiny/one")
	first.Phase("copies")
	copies := []Copy{{Host: "b", From: "a", Bytes: 1, Total: 2, TotalFiles: 1}}
	time.Sleep(2 * every)
	first.Copies("copies", copies)
	second := Start(folder, "another")
	second.End(errors.New("no space\nand more"))
	second.Phase("too late")
	acts, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []Act{
		{Thing: "vllm_deployment tiny/one", Process: os.Getpid(), Phase: "copies", Copies: copies},
		{Thing: "another", Process: os.Getpid(), Phase: "begins", Ended: true, Error: "no space"},
	}
	if diff := cmp.Diff(want, acts, cmpopts.IgnoreFields(Act{}, "Started", "Updated")); diff != "" {
		t.Error(diff)
	}
	now := time.Now()
	if !acts[0].Running(now) || acts[0].Running(now.Add(Silence+time.Second)) || acts[1].Running(now) {
		t.Error("what runs is not told from what has ended")
	}
	first.End(nil)
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may look: %v, %v", info, err)
	}
}

func TestOldActsAreRemoved(t *testing.T) {
	folder := t.TempDir()
	old, strange := filepath.Join(folder, "1-old.json"), filepath.Join(folder, "2-strange.json")
	for path, age := range map[string]time.Duration{old: 2 * keep, strange: 0} {
		when := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	Start(folder, "x").End(nil)
	if _, err := os.Stat(old); err == nil {
		t.Error("an old act stays")
	}
	if acts, err := Read(folder); err != nil || len(acts) != 1 {
		t.Errorf("got %v, %v", acts, err)
	}
}

// Whoever acts must not fail because nobody can watch.
func TestNowhereToWrite(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", filepath.Join(blocked, "x")} {
		w := Start(folder, "x")
		w.Phase("goes on")
		w.End(nil)
	}
}
