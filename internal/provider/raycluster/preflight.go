package raycluster

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// occasion is why the nodes are judged.
type occasion int

const (
	// creating: nothing stands yet, so what cannot work ends the plan, and what hurts is said.
	creating occasion = iota
	// changing: the declaration changed under a cluster that stands; as creating, but for what may be
	// the cluster's own doing on its nodes.
	changing
	// repairing: the nodes changed and not the declaration. A plan that shows drift must not fail, so
	// that only what cannot work is said, as a warning.
	repairing
	// starting: in apply, where the plan has said all; what cannot work ends it.
	starting
)

// judge holds the nodes against what a cluster needs of them, before anything is changed.
func (r *clusterResource) judge(ctx context.Context, cluster opened, when occasion, doing string, diags *diag.Diagnostics) {
	members, err := look(ctx, cluster)
	if err != nil {
		shared.Unable(diags, path.Empty(), doing, err)
		return
	}
	for _, finding := range node.Preflight(node.Cluster{Members: members, WeightsDir: cluster.spec.WeightsDir, Claims: when == creating}) {
		at := cluster.attribute(finding.Hosts[len(finding.Hosts)-1])
		fatal := finding.Severity == node.Error
		switch {
		case fatal && when == repairing:
			diags.AddAttributeWarning(at, finding.Summary, finding.Cause+"\n\n"+finding.Fix+"\n\nApplying this plan may not bring the cluster back before that is mended.")
		case fatal || when == creating || when == changing:
			shared.Found(diags, at, finding)
		}
	}
}

// attribute is where a host is declared.
func (o opened) attribute(host string) path.Path {
	at := slices.IndexFunc(o.spec.Members, func(member ray.Member) bool { return member.Host == host })
	if at <= 0 {
		return path.Root("head")
	}
	return path.Root("workers").AtListIndex(at - 1)
}

// look takes the snapshots of all members at once.
func look(ctx context.Context, cluster opened) ([]node.Member, error) {
	members := make([]node.Member, len(cluster.spec.Members))
	failures := make([]error, len(members))
	var group sync.WaitGroup
	for i, member := range cluster.spec.Members {
		group.Go(func() {
			machine := cluster.machines[member.Host]
			facts, ours, err := lookAt(ctx, machine)
			members[i] = node.Member{Host: member.Host, Address: member.Address, Facts: facts, Ours: ours}
			failures[i] = err
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// lookAt gives a machine's facts, and the containers on it that are the provider's.
func lookAt(ctx context.Context, machine fleet.Machine) (facts agent.Facts, ours []string, err error) {
	fail := func(step string, err error) (agent.Facts, []string, error) {
		return facts, nil, &ray.Error{Host: machine.Host(), Step: step, Cause: err}
	}
	if facts, err = machine.Facts(ctx); err != nil {
		return fail("read the node's facts", err)
	}
	containers, err := machine.Containers(ctx)
	if err != nil {
		return fail("list the containers", err)
	}
	for _, container := range containers {
		if container.Spec.Labels[fleet.LabelResource] != "" {
			ours = append(ours, container.ID)
		}
	}
	return facts, ours, nil
}
