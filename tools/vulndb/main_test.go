package main

import (
	"encoding/json"
	"testing"
)

func TestIndex(t *testing.T) {
	var entries []entry
	reports := `[
		{"id": "GO-2", "aliases": ["CVE-2"], "affected": [{"package": {"name": "b"}}, {"package": {"name": "b"}}, {"package": {"name": "a"}}]},
		{"id": "GO-1", "affected": [{"package": {"name": "b"}}]}
	]`
	if err := json.Unmarshal([]byte(reports), &entries); err != nil {
		t.Fatal(err)
	}
	vulns, modules := index(entries)
	got, err := json.Marshal([]any{vulns, modules})
	if err != nil {
		t.Fatal(err)
	}
	// Sorted, and a module that a report names twice has it once.
	const zero = `"modified":"0001-01-01T00:00:00Z"`
	want := `[[{"id":"GO-1",` + zero + `},{"id":"GO-2",` + zero + `,"aliases":["CVE-2"]}],` +
		`[{"path":"a","vulns":[{"id":"GO-2",` + zero + `}]},` +
		`{"path":"b","vulns":[{"id":"GO-1",` + zero + `},{"id":"GO-2",` + zero + `}]}]]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
