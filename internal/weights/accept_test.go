package weights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// file is one file of a listing.
func file(name string, size int64) agent.File { return agent.File{Name: name, Size: size, Modified: 7} }

// sharded is a whole model of two shards.
func sharded() agent.Listing {
	return agent.Listing{Folder: "/models/tiny", Exists: true, FreeBytes: 1 << 40, Files: []agent.File{
		file("config.json", 10), file("model-00001-of-00002.safetensors", 3000), file("model-00002-of-00002.safetensors", 4000),
		file("model.safetensors.index.json", 20),
	}, Shards: []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}}
}

// sampled is the listing with one fingerprint for all.
func sampled(fingerprint string) agent.Listing {
	listing := sharded()
	for i := range listing.Files {
		listing.Files[i].Fingerprint = fingerprint
	}
	return listing
}

// without is the listing less some files.
func without(listing agent.Listing, names ...string) agent.Listing {
	var kept []agent.File
	for _, one := range listing.Files {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+one.Name+" ") {
			kept = append(kept, one)
		}
	}
	listing.Files = kept
	return listing
}

func TestAccept(t *testing.T) {
	const prefix = "Model folder /models/tiny on aurora-1 "
	damaged := sharded()
	damaged.Files[1].Damage = "120 of 200 bytes of tensors"
	tests := map[string]struct {
		listing agent.Listing
		want    []string // summaries
	}{
		"whole":         {sharded(), nil},
		"no folder":     {agent.Listing{Folder: "/models/tiny"}, []string{prefix + "does not exist"}},
		"empty folder":  {agent.Listing{Folder: "/models/tiny", Exists: true}, []string{prefix + "is empty"}},
		"no config":     {without(sharded(), "config.json"), []string{prefix + "has no config.json"}},
		"missing shard": {without(sharded(), "model-00002-of-00002.safetensors"), []string{prefix + "lacks 1 of 2 shards: model-00002-of-00002.safetensors"}},
		"no index":      {without(sharded(), "model.safetensors.index.json"), []string{prefix + "has no model.safetensors.index.json"}},
		"single file, no index": {without(sharded(), "model.safetensors.index.json", "model-00002-of-00002.safetensors"),
			nil},
		"no weights": {agent.Listing{Folder: "/models/tiny", Exists: true, Files: []agent.File{file("config.json", 1)}}, []string{prefix + "has no weights"}},
		"damaged":    {damaged, []string{prefix + "is damaged: model-00001-of-00002.safetensors: 120 of 200 bytes of tensors"}},
		"the folder above": {agent.Listing{Folder: "/models/tiny", Exists: true, Files: []agent.File{file("v1/config.json", 1), file("v1/model.safetensors", 2)}},
			[]string{prefix + "has no config.json"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := Accept("aurora-1", "", test.listing)
			var got []string
			for _, one := range problems {
				got = append(got, one.Summary)
				if one.Detail == "" {
					t.Errorf("%s: no detail", one.Summary)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A hub snapshot is links to blobs; large blobs are named by their sha256, small ones by a git hash.
func TestAcceptSnapshot(t *testing.T) {
	below := "snapshots/" + commit
	sha := strings.Repeat("ab", 32)
	listing := agent.Listing{Folder: "/hf/hub/models--a--b", Exists: true, Files: []agent.File{
		{Name: "refs/main", Size: 40},
		{Name: below + "/model.safetensors", Size: 9, Link: "../../blobs/" + sha, Modified: 5},
		{Name: below + "/config.json", Size: 3, Link: "../../blobs/" + commit},
	}}
	manifest, problems := Accept("aurora-1", below, listing)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := Manifest{Files: []agent.File{
		{Name: below + "/config.json", Size: 3, Link: "../../blobs/" + commit},
		{Name: below + "/model.safetensors", Size: 9, Link: "../../blobs/" + sha, SHA256: sha},
	}}
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Error(diff)
	}
}

func TestDiscover(t *testing.T) {
	listings := map[string]agent.Listing{"a": without(sharded(), "config.json"), "b": sharded(), "c": sharded()}
	manifest, host, problems := Discover([]string{"a", "b", "c"}, "", listings, nil)
	if host != "b" || len(problems) > 0 || manifest.Bytes() != 7030 {
		t.Errorf("got %s, %v, %d bytes", host, problems, manifest.Bytes())
	}
	const one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	rotten := without(sharded(), one)
	rotten.Files[1].Damage = "cut"
	manifest, host, problems = Discover([]string{"a", "b"}, "", map[string]agent.Listing{"a": rotten, "b": without(sharded(), "config.json")}, nil)
	if host != "" || len(problems) > 0 || manifest.Bytes() != 7030 {
		t.Errorf("together: got %q, %v, %d bytes", host, problems, manifest.Bytes())
	}
	other := without(sharded(), two)
	other.Files[1].Size = 2999
	_, _, problems = Discover([]string{"a", "b"}, "", map[string]agent.Listing{"a": without(sharded(), "config.json"), "b": other}, nil)
	if len(problems) != 2 {
		t.Errorf("a mixture: got %v", problems)
	}
	renewed, known := sharded(), sharded()
	known.Files[1].Fingerprint = "old"
	renewed.Files[1].Fingerprint = "new"
	manifest, host, problems = Discover([]string{"a", "b", "c"}, "", map[string]agent.Listing{"a": known, "b": without(renewed, "config.json"), "c": renewed}, known.Files)
	if host != "c" || len(problems) > 0 || manifest.Files[1].Fingerprint != "new" {
		t.Errorf("renewed on c: got %q, %v", host, problems)
	}
	_, host, _ = Discover([]string{"a", "b"}, "", map[string]agent.Listing{"a": sharded(), "b": sharded()}, sharded().Files)
	if host != "a" {
		t.Errorf("renewed nowhere: got %q", host)
	}
	_, host, problems = Discover([]string{"a", "x"}, "", listings, nil)
	if host != "" || len(problems) != 1 {
		t.Errorf("got %q, %v", host, problems)
	}
}

func TestLost(t *testing.T) {
	manifest := Manifest{Files: []agent.File{file("a", 1), file("b", 1)}}
	bad := func(names ...string) State {
		state := State{Bad: map[string]string{}}
		for _, name := range names {
			state.Bad[name] = "missing"
		}
		return state
	}
	for name, test := range map[string]struct {
		states map[string]State
		want   bool
	}{
		"complete":       {map[string]State{"x": bad(), "y": bad()}, false},
		"one lacks all":  {map[string]State{"x": bad("a", "b"), "y": bad()}, false},
		"one each":       {map[string]State{"x": bad("a"), "y": bad("b")}, false},
		"the same":       {map[string]State{"x": bad("a"), "y": bad("a", "b")}, true},
		"nobody to look": {nil, false},
	} {
		if got := Lost(manifest, test.states); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCompare(t *testing.T) {
	manifest, _ := Accept("a", "", sharded())
	sampledManifest, _ := Accept("a", "", sampled("accepted"))
	truncated, damaged, extra, dangling := sharded(), sharded(), sharded(), sharded()
	dangling.Files[2].Size, dangling.Files[2].Damage = 0, "link to a file that is not there: x"
	truncated.Files[2].Size = 3999
	damaged.Files[2].Damage = "header ends beyond the file"
	extra.Files = append(extra.Files, file("notes.txt", 5))
	tests := map[string]struct {
		manifest Manifest
		listing  agent.Listing
		want     State
		line     string
	}{
		"complete":   {manifest, sharded(), State{Complete, 4, 7030, map[string]string{}}, ""},
		"more files": {manifest, extra, State{Complete, 4, 7030, map[string]string{}}, ""},
		"truncated": {manifest, truncated, State{Incomplete, 3, 3030, map[string]string{"model-00002-of-00002.safetensors": "3999 of 4000 bytes"}},
			"10.1.230.12: weights incomplete, 3 of 4 files, 3030 of 7030 bytes"},
		"dangling link": {manifest, dangling, State{Incomplete, 3, 3030, map[string]string{"model-00002-of-00002.safetensors": "link to a file that is not there: x"}},
			"10.1.230.12: weights incomplete, 3 of 4 files, 3030 of 7030 bytes"},
		"damaged": {manifest, damaged, State{Incomplete, 3, 3030, map[string]string{"model-00002-of-00002.safetensors": "header ends beyond the file"}},
			"10.1.230.12: weights incomplete, 3 of 4 files, 3030 of 7030 bytes"},
		"replaced": {sampledManifest, sampled("other"), State{Incomplete, 0, 0, map[string]string{"config.json": otherContent, "model-00001-of-00002.safetensors": otherContent,
			"model-00002-of-00002.safetensors": otherContent, "model.safetensors.index.json": otherContent}},
			"10.1.230.12: weights incomplete, 0 of 4 files, 0 of 7030 bytes; config.json has other content than accepted, of the same size, and so have 3 more"},
		"missing": {manifest, agent.Listing{}, State{Missing, 0, 0, map[string]string{"config.json": "missing", "model-00001-of-00002.safetensors": "missing",
			"model-00002-of-00002.safetensors": "missing", "model.safetensors.index.json": "missing"}},
			"10.1.230.12: weights missing, 0 of 4 files, 0 of 7030 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Compare(test.manifest, test.listing)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if line := Line("10.1.230.12", test.manifest, got); line != test.line {
				t.Errorf("line %q", line)
			}
		})
	}
}
