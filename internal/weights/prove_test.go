package weights

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// TestProve walks one file on two hosts through what may happen to it.
func TestProve(t *testing.T) {
	file := func(stamp, sample string) agent.File {
		return agent.File{Name: "m", Size: 10, Stamp: stamp, Fingerprint: sample}
	}
	type of map[string]string
	tests := map[string]struct {
		known    string // the manifest's digest
		seen     map[string]map[string]string
		files    map[string]agent.File // by host
		digests  of                    // by host
		depth    Depth
		read     of // the files that were read, by host
		bad      of
		want     string
		wantSeen map[string]map[string]string
	}{
		"first look": {
			files: map[string]agent.File{"a": file("1", "p"), "b": file("2", "p")},
			bad:   of{}, read: of{}, wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
		},
		"nothing changed": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("2", "")},
			bad:   of{}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
		},
		"another model of the same shape needs no reading": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("3", "q")},
			bad:   of{"b": otherContent}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!3"}},
		},
		"touched": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("3", "p")}, digests: of{"b": "d"},
			bad: of{}, read: of{"b": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "3"}},
		},
		"changed": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("3", "p")}, digests: of{"b": "x"},
			bad: of{"b": otherContent}, read: of{"b": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!3"}},
		},
		"still changed": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!3"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("3", "p")},
			bad:   of{"b": otherContent}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!3"}},
		},
		"touched, and no digest known: the other host's counts": {
			seen:  map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("4", "p"), "b": file("2", "")}, digests: of{"a": "d", "b": "d"},
			bad: of{}, read: of{"a": "m", "b": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "4"}, "b": {"m": "2"}},
		},
		"changed, and no digest known: what was not written to is right": {
			seen:  map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}},
			files: map[string]agent.File{"a": file("4", "p"), "b": file("2", "")}, digests: of{"a": "x", "b": "d"},
			bad: of{"a": otherContent}, read: of{"a": "m", "b": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "!4"}, "b": {"m": "2"}},
		},
		"rotten, found by a full look": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "2"}}, depth: Full,
			files: map[string]agent.File{"a": file("1", ""), "b": file("2", "")}, digests: of{"a": "d", "b": "x"},
			bad: of{"b": otherContent}, read: of{"a": "m", "b": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!2"}},
		},
		"rotten, remembered by the next quick look": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!2"}},
			files: map[string]agent.File{"a": file("1", ""), "b": file("2", "")},
			bad:   of{"b": otherContent}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}, "b": {"m": "!2"}},
		},
		"rotten while it is read": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}}, depth: Full,
			files: map[string]agent.File{"a": file("1", "")},
			bad:   of{"a": "cannot be read: no such file"}, read: of{"a": "m"}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}},
		},
		"gone": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}}, files: map[string]agent.File{"a": {}},
			bad: of{"a": "missing"}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}},
		},
		"cut": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}}, files: map[string]agent.File{"a": {Name: "m", Size: 9, Stamp: "2"}},
			bad: of{"a": "9 of 10 bytes"}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}},
		},
		"a host of another day": {
			known: "d", seen: map[string]map[string]string{"a": {"m": "1"}, "old": {"m": "2"}},
			files: map[string]agent.File{"a": file("1", "")},
			bad:   of{}, read: of{}, want: "d", wantSeen: map[string]map[string]string{"a": {"m": "1"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := Manifest{Files: []agent.File{{Name: "m", Size: 10, SHA256: test.known, Fingerprint: "p"}}, Seen: test.seen}
			var hosts []Host
			listings, nodes := map[string]agent.Listing{}, map[string]*node{}
			for _, host := range sortedKeys(test.files) {
				nodes[host] = &node{name: host, digests: map[string]string{"m": test.digests[host]}}
				hosts = append(hosts, nodes[host].host("10.0.0.1"))
				listing := agent.Listing{Exists: true}
				if test.files[host].Name != "" {
					listing.Files = []agent.File{test.files[host]}
				}
				listings[host] = listing
			}
			if test.depth == "" {
				test.depth = Quick
			}
			got, proved, err := Prove(t.Context(), manifest, hosts, listings, test.depth)
			if err != nil {
				t.Fatal(err)
			}
			bad, read := of{}, of{}
			for host := range test.files {
				if reason := Compare(got, proved[host]).Bad["m"]; reason != "" {
					bad[host] = reason
				}
				for _, file := range nodes[host].read {
					read[host] += file
				}
			}
			if diff := cmp.Diff(test.bad, bad); diff != "" {
				t.Error("bad:", diff)
			}
			if diff := cmp.Diff(test.read, read); diff != "" {
				t.Error("read:", diff)
			}
			if diff := cmp.Diff(test.wantSeen, got.Seen, cmpopts.EquateEmpty()); diff != "" {
				t.Error("seen:", diff)
			}
			if got.Files[0].SHA256 != test.want {
				t.Errorf("digest is %q", got.Files[0].SHA256)
			}
			if manifest.Files[0].SHA256 != test.known {
				t.Error("the manifest that was given is changed")
			}
		})
	}
}

func TestProveFails(t *testing.T) {
	broken := errors.New("the disk hangs")
	one := &node{name: "a", digestErr: broken}
	listings := map[string]agent.Listing{"a": {Exists: true, Files: []agent.File{{Name: "m", Size: 1}}}}
	if _, _, err := Prove(t.Context(), Manifest{Files: []agent.File{{Name: "m", Size: 1}}}, []Host{one.host("10.0.0.1")}, listings, Full); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
