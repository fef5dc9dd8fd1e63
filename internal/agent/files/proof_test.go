package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// one lists a folder with one file.
func one(t *testing.T, folder string) agent.File {
	t.Helper()
	listing, err := List(t.Context(), folder, "/m", agent.ListRequest{})
	if err != nil || len(listing.Files) != 1 {
		t.Fatal(listing, err)
	}
	return listing.Files[0]
}

func TestStampAndFingerprint(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	other := bytes.Repeat([]byte("0123456789abcdeg"), 1<<18)
	flipped := bytes.Clone(content)
	flipped[1<<20+4097] ^= 1 // between two samples
	last := bytes.Clone(content)
	last[len(last)-1] ^= 1
	tests := map[string]struct {
		change               func(path string) error
		sameStamp, samePrint bool
	}{
		"nothing":  {func(string) error { return nil }, true, true},
		"reading":  {func(path string) error { _, err := os.ReadFile(path); return err }, true, true},
		"touch":    {func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) }, false, true},
		"replaced": {func(path string) error { return os.WriteFile(path, other, 0o600) }, false, false},
		"bit flip": {func(path string) error { return os.WriteFile(path, flipped, 0o600) }, false, true},
		"last bit": {func(path string) error { return os.WriteFile(path, last, 0o600) }, false, false},
		"the time of modification restored": {func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, other, 0o600), os.Chtimes(path, time.Now(), info.ModTime()))
		}, false, false},
		"another file moved over it": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", content, 0o600), os.Rename(path+"2", path))
		}, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "model.bin")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			before := one(t, folder)
			if before.Stamp == "" || before.Fingerprint == "" {
				t.Fatalf("got %+v", before)
			}
			time.Sleep(5 * time.Millisecond) // A kernel's clock of files may tick as slowly as 4 ms.
			if err := test.change(path); err != nil {
				t.Fatal(err)
			}
			after := one(t, folder)
			if (after.Stamp == before.Stamp) != test.sameStamp {
				t.Errorf("stamps are %s and %s", before.Stamp, after.Stamp)
			}
			if (after.Fingerprint == before.Fingerprint) != test.samePrint {
				t.Errorf("fingerprints are %s and %s", before.Fingerprint, after.Fingerprint)
			}
		})
	}
}

func TestFingerprintOfSmallFilesIsOfAllOfThem(t *testing.T) {
	seen := map[string]string{}
	for _, content := range []string{"", "a", "b", strings.Repeat("a", wholeBelow), strings.Repeat("a", wholeBelow-1) + "b", strings.Repeat("a", wholeBelow+1)} {
		sample, err := Fingerprint(strings.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if other, found := seen[sample]; found {
			t.Errorf("contents of %d and %d bytes are alike", len(other), len(content))
		}
		seen[sample] = content
	}
	if _, err := Fingerprint(strings.NewReader("short"), 6); err == nil {
		t.Error("a file that ends early has a fingerprint")
	}
}

func TestDigest(t *testing.T) {
	folder := t.TempDir()
	lay(t, folder, map[string]string{"a": "content", "blobs/x": "more", "snapshots/r/b": "-> ../../blobs/x", "out": "-> /etc/passwd"})
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := []agent.File{{Name: "pipe"}, {Name: "blobs"}, {Name: "a"}, {Name: "snapshots/r/b", Link: "../../blobs/x"}, {Name: "none"}, {Name: "../x"}, {Name: "out"}}
	got := map[string]string{}
	err := Digest(t.Context(), folder, "/m", list, func(event agent.TransferEvent) {
		if event.Finished != nil {
			got[event.Finished.Name] = event.Finished.SHA256
			if (event.Finished.SHA256 == "") != strings.HasPrefix(event.Finished.Damage, "cannot be read: ") {
				t.Errorf("got %+v", event.Finished)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string { digest := sha256.Sum256([]byte(text)); return hex.EncodeToString(digest[:]) }
	want := map[string]string{"pipe": "", "blobs": "", "a": sum("content"), "snapshots/r/b": sum("more"), "none": "", "../x": "", "out": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Digest(ctx, folder, "/m", list, func(agent.TransferEvent) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestListOfNamesThatJSONCannotCarry(t *testing.T) {
	folder := t.TempDir()
	lay(t, folder, map[string]string{"bad\xff": "x", "line\nbreak \"quoted\" ü": "x"})
	listing, err := List(t.Context(), folder, "/m", agent.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range listing.Files {
		got[file.Name] = file.Damage
	}
	if diff := cmp.Diff(map[string]string{"bad\ufffd": "its name is not valid UTF-8", "line\nbreak \"quoted\" ü": ""}, got); diff != "" {
		t.Error(diff)
	}
}

// TestListOfALargeModel holds the quick proof to its limit: 40 shards of 3 GB with the headers of a
// mixture of experts, here without their tensors' bytes on the disk.
func TestListOfALargeModel(t *testing.T) {
	folder := t.TempDir()
	for i := range 40 {
		var tensors []string
		const size = 1_000_000
		for j := range 3000 {
			tensors = append(tensors, fmt.Sprintf(`"model.layers.%d.mlp.experts.%d.down_proj.weight":{"dtype":"F8_E4M3","shape":[1000,1000],"data_offsets":[%d,%d]}`, i, j, j*size, (j+1)*size))
		}
		header := "{" + strings.Join(tensors, ",") + "}"
		path := filepath.Join(folder, fmt.Sprintf("model-%05d.safetensors", i))
		if err := os.WriteFile(path, shard(header, 0), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 8+int64(len(header))+3000*size); err != nil {
			t.Skip("the file system has no sparse files:", err)
		}
	}
	start := time.Now()
	listing, err := List(t.Context(), folder, "/m", agent.ListRequest{})
	took := time.Since(start)
	if err != nil || len(listing.Files) != 40 || listing.Files[0].Damage != "" {
		t.Fatalf("%d files, %v", len(listing.Files), err)
	}
	request := agent.ListRequest{Known: map[string]string{}}
	for _, file := range listing.Files {
		request.Known[file.Name] = file.Stamp
	}
	start = time.Now()
	again, err := List(t.Context(), folder, "/m", request)
	tookKnown := time.Since(start)
	if err != nil || len(again.Files) != 40 || again.Files[7].Stamp != listing.Files[7].Stamp || again.Files[7].Fingerprint != "" {
		t.Fatalf("known: %+v, %v", again, err)
	}
	t.Logf("first %s, known %s", took, tookKnown)
	if tookKnown > 300*time.Millisecond {
		t.Errorf("known files took %s", tookKnown)
	}
}
