package shared

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

func TestClaim(t *testing.T) {
	var nodes Nodes
	one := node.Claim{Host: "a", Machine: node.Machine{Name: "m1"}}
	for range 2 { // a resource is planned more than once
		if _, why := nodes.Claim("first", one); why != "" {
			t.Fatal(why)
		}
	}
	if other, why := nodes.Claim("second", node.Claim{Host: "b", Machine: node.Machine{Name: "m1"}}); why == "" || other.Host != "a" {
		t.Errorf("%v, %q", other, why)
	}
	if _, why := nodes.Claim("third", node.Claim{Host: "c"}); why != "" {
		t.Error(why)
	}
}

// Terraform plans ten resources at once; of many with one host a single one passes.
func TestClaimAtOnce(t *testing.T) {
	var nodes Nodes
	var passed, told atomic.Int64
	var group sync.WaitGroup
	for ticket := range 10 {
		group.Go(func() {
			if _, why := nodes.Claim(string(rune('a'+ticket)), node.Claim{Host: "one"}); why == "" {
				passed.Add(1)
			}
			if nodes.First("one", "text") {
				told.Add(1)
			}
		})
	}
	group.Wait()
	if passed.Load() != 1 || told.Load() != 1 {
		t.Errorf("%d claims passed, %d times told", passed.Load(), told.Load())
	}
}

func TestKeep(t *testing.T) {
	silent := func(host string) error { return &sshx.Error{Kind: sshx.TimedOut, Host: host} }
	keep := Connection{Unreachable: types.StringValue("keep")}
	stop := Connection{Unreachable: types.StringValue("error")}
	for name, c := range map[string]struct {
		nodes    Connections
		provider bool
		err      error
		want     bool
	}{
		"the provider keeps":             {Connections{"a": {}}, true, silent("a"), true},
		"nobody keeps":                   {Connections{"a": {}}, false, silent("a"), false},
		"the node keeps":                 {Connections{"a": keep, "b": {}}, false, silent("a"), true},
		"another node keeps":             {Connections{"a": keep, "b": {}}, false, silent("b"), false},
		"the node stops":                 {Connections{"a": stop}, true, silent("a"), false},
		"a jump host of nodes that keep": {Connections{"a": keep, "b": keep}, false, silent("gate"), true},
		"a jump host of one that stops":  {Connections{"a": keep, "b": stop}, true, silent("gate"), false},
		"an answer is no silence":        {Connections{"a": keep}, true, &sshx.Error{Kind: sshx.AuthFailed, Host: "a"}, false},
		"another error":                  {Connections{"a": keep}, true, errors.New("x"), false},
	} {
		if got := c.nodes.Keep(&Data{KeepUnreachable: c.provider}, c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
