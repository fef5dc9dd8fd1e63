package shared

import (
	"sync"

	"github.com/spark-stack/terraform-provider-spark/internal/node"
)

// Nodes are the spark_nodes that a plan has been through, so that one machine is not declared twice.
// The zero value is ready.
type Nodes struct {
	mutex  sync.Mutex
	claims map[string]node.Claim
	told   map[string]bool
}

// Claim notes what a resource stands for. ticket tells resources apart: Terraform plans one more than
// once, and does not say which it is. why and other are set when another resource has that machine.
func (n *Nodes) Claim(ticket string, claim node.Claim) (other node.Claim, why string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for known, theirs := range n.claims {
		if known == ticket {
			continue
		}
		if why = node.Same(theirs, claim); why != "" {
			return theirs, why
		}
	}
	if n.claims == nil {
		n.claims = map[string]node.Claim{}
	}
	n.claims[ticket] = claim
	return other, ""
}

// First says whether a text about a host was not told before.
func (n *Nodes) First(host, text string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	key := host + "\x00" + text
	if n.told[key] {
		return false
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[key] = true
	return true
}
