package weights

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// spread is a model on the first of some nodes.
func spread(count int) ([]*node, []Host) {
	net := &network{receivers: map[string]*receiver{}, secrets: map[string]int{}}
	var nodes []*node
	var hosts []Host
	for i := range count {
		one := &node{name: fmt.Sprintf("10.1.230.%d", 11+i), net: net, listing: agent.Listing{Folder: "/models/tiny", FreeBytes: 1 << 30}}
		if i == 0 {
			one.listing = sharded()
		}
		nodes, hosts = append(nodes, one), append(hosts, one.host(fmt.Sprintf("192.168.200.%d", 11+i)))
	}
	return nodes, hosts
}

// A node that fails, in whatever way, is named, and stops none of the others.
func TestStageGoesOnWithoutABadNode(t *testing.T) {
	full := &agent.Error{Host: "10.1.230.12", Step: "receive", Code: agent.TransferNoSpace, Message: "no space left on device"}
	tests := map[string]struct {
		prepare func(bad *node)
		says    string
	}{
		"full":        {func(bad *node) { bad.receiveErr = full }, "no space left"},
		"silent":      {func(bad *node) { bad.silent = true }, "no progress for 5m0s"},
		"no listener": {func(bad *node) { bad.deaf = true }, "opened no listener"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, hosts := spread(4)
				test.prepare(nodes[1])
				manifest, _ := Accept("a", "", sharded())
				manifest, err := Stage(t.Context(), manifest, hosts, nil)
				if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "to 10.1.230.12 (") {
					t.Errorf("got %v", err)
				}
				for _, other := range []string{"to 10.1.230.13 (", "to 10.1.230.14 ("} {
					if strings.Contains(err.Error(), other) {
						t.Errorf("a good node is blamed: %v", err)
					}
				}
				for _, good := range nodes[2:] {
					if state := Compare(manifest, good.listing); state.Condition != Complete {
						t.Errorf("%s: %v", good.name, state)
					}
				}
			})
		})
	}
}

// A source that cannot send is replaced by another one that has the file.
func TestStageFromAnotherSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, hosts := spread(3)
		nodes[1].listing = sharded()
		nodes[0].sendErr = &agent.Error{Host: "10.1.230.11", Step: "send", Code: agent.TransferFailed, Message: "input/output error"}
		manifest, _ := Accept("a", "", sharded())
		if _, err := Stage(t.Context(), manifest, hosts, nil); err != nil {
			t.Error(err)
		}
		if state := Compare(manifest, nodes[2].listing); state.Condition != Complete {
			t.Errorf("got %v", state)
		}
	})
}

func TestRoutes(t *testing.T) {
	files := func(sizes ...int64) (list []agent.File) {
		for _, size := range sizes {
			list = append(list, agent.File{Name: fmt.Sprint(size), Size: size})
		}
		return list
	}
	got := Routes([]Copy{{From: "a", To: "c", Files: files(1, 2)}, {From: "b", To: "c", Files: files(3)}, {From: "a", To: "b", Files: files(4)}, {From: "a", To: "c", Files: files(5)}})
	want := []Route{{From: []string{"a"}, To: "b", Files: 1, Bytes: 4}, {From: []string{"a", "b"}, To: "c", Files: 4, Bytes: 11}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A copy that failed is not planned again between the two hosts, and a spent host gets nothing.
func TestQueue(t *testing.T) {
	manifest := Manifest{Files: []agent.File{{Name: "m", Size: 1}}}
	q := newQueue(manifest, []string{"a", "b", "c"}, map[string]map[string]bool{"a": {"m": true}, "b": {"m": true}, "c": {}})
	first := q.ready()
	if diff := cmp.Diff([]string{"0 a>c m"}, shown(first)); diff != "" {
		t.Fatal(diff)
	}
	if more := q.ready(); more != nil {
		t.Errorf("busy hosts: %v", shown(more))
	}
	q.done(Copy{From: "a", To: "c"}, false)
	second := q.ready()
	if diff := cmp.Diff([]string{"0 b>c m"}, shown(second)); diff != "" {
		t.Fatal(diff)
	}
	q.done(Copy{From: "b", To: "c"}, false)
	if more := q.ready(); more != nil {
		t.Errorf("tried again: %v", shown(more))
	}
	q.failed = map[[2]string]bool{}
	q.spent["c"] = true
	if more := q.ready(); more != nil {
		t.Errorf("a spent host gets: %v", shown(more))
	}
	if diff := cmp.Diff([]string{"c"}, q.incomplete()); diff != "" {
		t.Error(diff)
	}
}
