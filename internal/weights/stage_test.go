package weights

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// pair is a node that has the model and one with room for it.
func pair() (*node, *node, []Host) {
	net := &network{receivers: map[string]*receiver{}, secrets: map[string]int{}}
	a := &node{name: "10.1.230.11", net: net, listing: sharded()}
	b := &node{name: "10.1.230.12", net: net, listing: agent.Listing{Folder: "/models/tiny", FreeBytes: 1 << 30}}
	return a, b, []Host{a.host("192.168.200.11"), b.host("192.168.200.12")}
}

func TestStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, hosts := pair()
		c := &node{name: "10.1.230.13", net: a.net, listing: b.listing}
		hosts = append(hosts, c.host("192.168.200.13"))
		manifest, _ := Accept("a", "", sharded())
		var last Progress
		manifest, err := Stage(t.Context(), manifest, hosts, func(p Progress) { last = p })
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range manifest.Files {
			if file.SHA256 != "sha-of-"+file.Name {
				t.Errorf("%s: digest %q", file.Name, file.SHA256)
			}
		}
		for _, host := range []*node{b, c} {
			if state := Compare(manifest, host.listing); state.Condition != Complete {
				t.Errorf("%s: %v", host.name, state)
			}
			if host.changed == 0 {
				t.Errorf("%s: the snapshot was kept", host.name)
			}
		}
		if want := "copying weights: 8 of 8 files, 0.0 of 0.0 MB"; last.String() != want {
			t.Errorf("got %s", last)
		}
		if last.Files != 8 || last.Bytes != 14060 || last.Total != 14060 {
			t.Errorf("last progress %+v", last)
		}
		for secret, times := range a.net.secrets {
			if len(secret) != 64 || times != 1 {
				t.Errorf("secret of %d digits used %d times", len(secret), times)
			}
		}
		again, err := Stage(t.Context(), manifest, hosts, nil)
		if err != nil || again.Bytes() != manifest.Bytes() {
			t.Errorf("second run: %v", err)
		}
	})
}

func TestStageFailures(t *testing.T) {
	gone := &agent.Error{Host: "10.1.230.12", Step: "list /models/tiny", Message: "session ended"}
	tests := map[string]struct {
		prepare func(a, b *node)
		code    string
		says    []string
	}{
		"full disk, seen by the receiver": {func(_, b *node) {
			b.receiveErr = &agent.Error{Host: "10.1.230.12", Step: "receive", Code: agent.TransferNoSpace, Message: "no space left on device"}
		}, agent.TransferNoSpace, []string{"10.1.230.11 (192.168.200.11) to 10.1.230.12 (192.168.200.12:40000)", "no space left", "needs 7030 bytes"}},
		"firewall": {func(a, _ *node) {
			a.sendErr = &agent.Error{Host: "10.1.230.11", Step: "send", Code: agent.TransferConnect, Message: "i/o timeout"}
		}, agent.TransferConnect, []string{"firewall between the fabric addresses", "ufw allow from 192.168.200.11"}},
		"content": {func(a, _ *node) {
			a.sendErr = &agent.Error{Host: "10.1.230.11", Step: "send", Code: agent.TransferMismatch, Message: "digest"}
		}, agent.TransferMismatch, []string{"fetch it again there"}},
		"no listener":  {func(_, b *node) { b.deaf = true }, "", []string{"open listener", "within 30s"}},
		"stands still": {func(_, b *node) { b.silent = true }, agent.TransferStalled, []string{"no progress for 5m0s", "ping -M do -s 8972"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, hosts := pair()
				test.prepare(a, b)
				manifest, _ := Accept("a", "", sharded())
				_, err := Stage(t.Context(), manifest, hosts, nil)
				var failed *TransferError
				if !errors.As(err, &failed) {
					t.Fatalf("got %v", err)
				}
				if failed.Code != test.code {
					t.Errorf("code %q, want %q", failed.Code, test.code)
				}
				for _, part := range test.says {
					if text := err.Error() + "\n" + failed.Advice; strings.Count(text, part) != 1 {
						t.Errorf("%q is not once in %s", part, text)
					}
				}
			})
		})
	}
	t.Run("no room", func(t *testing.T) {
		_, b, hosts := pair()
		b.listing.FreeBytes = 7000
		manifest, _ := Accept("a", "", sharded())
		_, err := Stage(t.Context(), manifest, hosts, nil)
		var space *SpaceError
		if !errors.As(err, &space) || space.Need != 7030 || space.Host != b.name {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a host does not answer", func(t *testing.T) {
		_, b, hosts := pair()
		b.listErr = gone
		if _, err := Stage(t.Context(), Manifest{}, hosts, nil); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bad after the copy", func(t *testing.T) {
		a, _, hosts := pair()
		a.forge = "config.json"
		manifest, _ := Accept("a", "", sharded())
		_, err := Stage(t.Context(), manifest, hosts, nil)
		var incomplete *IncompleteError
		if !errors.As(err, &incomplete) || incomplete.Bad["config.json"] != "cut" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, b, hosts := pair()
			b.silent = true
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			manifest, _ := Accept("a", "", sharded())
			if _, err := Stage(ctx, manifest, hosts, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestClean(t *testing.T) {
	a, b, hosts := pair()
	if err := Clean(t.Context(), hosts); err != nil || len(a.cleaned) != 1 || len(b.cleaned) != 1 {
		t.Errorf("got %v, %v, %v", err, a.cleaned, b.cleaned)
	}
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last Progress
		m := newMeter([]Copy{{From: "a", To: "b", Files: []agent.File{{Size: 119e9}}}}, func(p Progress) { last = p })
		m.begin("a", "b")
		for second := range 10 {
			time.Sleep(time.Second)
			m.bytes("b", int64(second+1)*1.2e9)
		}
		want := "copying weights: 0 of 1 files, 12.0 of 119.0 GB, 1.20 GB/s, 1m29s left"
		if last.String() != want {
			t.Errorf("got  %s\nwant %s", last, want)
		}
		node := NodeProgress{Host: "b", From: "a", Bytes: 12e9, Total: 119e9, TotalFiles: 1, Rate: 1.2e9, ETA: last.ETA}
		if diff := cmp.Diff([]NodeProgress{node}, last.Nodes); diff != "" {
			t.Error(diff)
		}
		// A copy that fails is counted by what of it is whole; the next one counts what lies there in part.
		m.finish("b", 0)
		m.begin("c", "b")
		time.Sleep(time.Second)
		if m.bytes("b", 11e9); last.Bytes != 11e9 || last.Rate < 0 {
			t.Errorf("after a failure: %+v", last)
		}
	})
}
