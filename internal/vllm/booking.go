package vllm

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// Bookings are the deployments of one plan by cluster, so that no GPU is given away twice. A cluster serves
// one: the gate wants all of its GPUs free, and vLLM's first rank always takes one of the head's. The zero
// value is ready.
type Bookings struct {
	mutex  sync.Mutex
	booked map[string]string // cluster to deployment
}

// Book notes that a deployment takes its cluster, and says who has it already. Terraform plans a deployment
// more than once.
func (b *Bookings) Book(spec Spec) []Problem {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	cluster := spec.Cluster.Name + "@" + spec.Cluster.Head().Host
	holder, taken := b.booked[cluster]
	if taken && holder != spec.Name {
		return []Problem{{
			Path: "cluster", Summary: fmt.Sprintf("Cluster %s serves %s already", spec.Cluster.Name, holder),
			Detail: fmt.Sprintf("A cluster serves one deployment: the first rank of each would want the GPU of the head, which vllm_deployment %s has. Remove one of them, or give %s a ray_cluster of its own.", holder, spec.Name),
		}}
	}
	if b.booked == nil {
		b.booked = map[string]string{}
	}
	b.booked[cluster] = spec.Name
	return nil
}

// holders are the other servers of this provider that run on the cluster, by their containers on the head.
func (s Spec) holders(containers []engine.Container) []string {
	var names []string
	for _, one := range containers {
		labels := one.Spec.Labels
		if one.Status == running && labels[fleet.LabelResource] == Resource && labels[fleet.LabelCluster] == s.Cluster.Name && !s.owns(one) {
			names = append(names, one.Spec.Name)
		}
	}
	slices.Sort(names)
	return names
}

// gated says why the cluster is not ready, and which other server may hold its GPUs.
func (s Spec) gated(containers []engine.Container) string {
	if names := s.holders(containers); len(names) > 0 {
		return "it is not ready for a server, and serves " + strings.Join(names, ", ") + " already"
	}
	return "it is not ready for a server"
}
