package ray

import (
	"context"
	"slices"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// CheckMembers asks the GCS whether exactly the declared nodes are members, each by its identity
// address and with its GPUs; with idle also whether nothing is taken or reserved. What is not so is
// a [*GateError].
func CheckMembers(ctx context.Context, spec Spec, machines map[string]fleet.Machine, idle bool) error {
	head, _ := spec.head()
	machine, found := machines[head.Host]
	if !found {
		return &Error{Host: head.Host, Step: "ask the GCS", Cause: errNoHead}
	}
	facts := map[string]agent.Facts{}
	for _, member := range spec.Members {
		seen, err := machines[member.Host].Facts(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "read the node's facts", Cause: err}
		}
		facts[member.Host] = seen
	}
	table, err := Ask(ctx, machine, Address(spec), token(spec))
	if err != nil {
		return &GateError{Unanswered: err}
	}
	findings := Membership(Want(spec), table, facts)
	if idle {
		findings = append(findings, Idle(Want(spec), table, facts)...)
	}
	if len(findings) > 0 {
		return &GateError{Findings: findings}
	}
	return nil
}

// SessionNow is the session that the containers of a cluster make now; empty while one is missing.
// A deployment compares it with the one that its server was started for.
func SessionNow(ctx context.Context, cluster string, machines map[string]fleet.Machine) (string, error) {
	nodes := map[string]Node{}
	for host, machine := range machines {
		containers, err := machine.Containers(ctx)
		if err != nil {
			return "", err
		}
		nodes[host] = Node{Container: missing}
		at := slices.IndexFunc(containers, func(one engine.Container) bool { return one.Spec.Name == ContainerName(cluster) })
		if at >= 0 {
			one := containers[at]
			nodes[host] = Node{Container: one.Status, ContainerID: one.ID, StartedAt: one.StartedAt.UTC().Format(time.RFC3339Nano)}
		}
	}
	return Session(nodes), nil
}
