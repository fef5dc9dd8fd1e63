package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// lay makes files of a folder; a content that begins with "-> " is a link.
func lay(t *testing.T, folder string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if len(content) > 3 && content[:3] == "-> " {
			err = os.Symlink(content[3:], path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestList(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "model")
	whole := string(shard(twoTensors, 200))
	lay(t, folder, map[string]string{
		"blobs/one": whole, "blobs/two": whole[:len(whole)-80], "blobs/three.incomplete": "x",
		"snapshots/r/a.safetensors": "-> ../../blobs/one", "snapshots/r/b.safetensors": "-> ../../blobs/two",
		"snapshots/r/absolute.safetensors": "-> " + folder + "/blobs/one",
		"snapshots/r/gone":                 "-> ../../blobs/none", "snapshots/r/out": "-> ../../../secret",
		"snapshots/r/passwd": "-> /etc/passwd", "snapshots/r/sneaky": "-> ../jump/secret", "snapshots/jump": "-> ../..",
		"snapshots/r/model.safetensors.index.json": `{"weight_map":{"x":"a.safetensors","y":"c.safetensors"}}`,
		"snapshots/r/sub/config.json":              "{}", "snapshots/r/sub/up": "-> ..",
		"snapshots/r/.hidden": "x", ".spark-partial/blobs/one": "x", "snapshots/r/.git/x": "x",
	})
	lay(t, filepath.Dir(folder), map[string]string{"secret": "x"})
	got, err := List(t.Context(), folder, "/models/m", agent.ListRequest{Below: "snapshots/r"})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(whole))
	want := agent.Listing{
		Folder: "/models/m", Exists: true,
		Files: []agent.File{
			{Name: "snapshots/r/a.safetensors", Size: size, Link: "../../blobs/one"},
			{Name: "snapshots/r/absolute.safetensors", Size: size, Link: "../../blobs/one"},
			{Name: "snapshots/r/b.safetensors", Size: size - 80, Link: "../../blobs/two", Damage: "120 of 200 bytes of tensors"},
			{Name: "snapshots/r/gone", Damage: "link to a file that is not there: ../../blobs/none"},
			{Name: "snapshots/r/model.safetensors.index.json", Size: 56},
			{Name: "snapshots/r/out", Damage: "link leaves the folder: ../../../secret"},
			{Name: "snapshots/r/passwd", Damage: "link leaves the folder: /etc/passwd"},
			{Name: "snapshots/r/sneaky", Damage: "link leaves the folder: ../jump/secret"},
			{Name: "snapshots/r/sub/config.json", Size: 2},
			{Name: "snapshots/r/sub/up", Damage: "link leads in a circle"},
		},
		Shards: []string{"snapshots/r/a.safetensors", "snapshots/r/c.safetensors"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(agent.File{}, "Modified", "Stamp", "Fingerprint")); diff != "" {
		t.Error(diff)
	}
	if got.Files[0].Modified == 0 {
		t.Error("no time of modification")
	}
}

func TestListFailures(t *testing.T) {
	folder := t.TempDir()
	lay(t, folder, map[string]string{"file": "x"})
	for below, exists := range map[string]bool{"": true, "none": false} {
		listing, err := List(t.Context(), folder, "/m", agent.ListRequest{Below: below})
		if err != nil || listing.Exists != exists {
			t.Errorf("%q: %+v, %v", below, listing, err)
		}
	}
	if listing, err := List(t.Context(), folder+"/none", "/m", agent.ListRequest{}); err != nil || listing.Exists {
		t.Errorf("a folder that is not there: %+v, %v", listing, err)
	}
	for _, below := range []string{"../x", "/etc", "file"} {
		if _, err := List(t.Context(), folder, "/m", agent.ListRequest{Below: below}); err == nil {
			t.Errorf("%q: no failure", below)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, folder, "/m", agent.ListRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAbsolute(t *testing.T) {
	tests := map[string]string{"/models/../m": "/m", "~/models": "/home/aurora/models", "~": "/home/aurora", "models": "", "~root/x": "", "": ""}
	for folder, want := range tests {
		got, err := Absolute(folder, "/home/aurora")
		if got = map[bool]string{true: got}[err == nil]; got != want {
			t.Errorf("%q: got %q, %v", folder, got, err)
		}
	}
}
