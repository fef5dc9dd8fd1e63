package ray

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
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
	shown, err := Credential(ctx, spec, machine)
	if err != nil {
		return &GateError{Unanswered: err}
	}
	table, err := ask(ctx, machine, Address(spec), shown)
	if err != nil {
		return &GateError{Unanswered: err}
	}
	judge := Membership
	if idle {
		judge = Gate
	}
	findings := judge(Want(spec), table, facts)
	if len(findings) == 0 {
		return nil
	}
	return &GateError{Findings: named(ctx, gcs.New(machine.HTTP(), Address(spec), shown), findings, spec)}
}

// askAgain is how often a GCS that gave no answer in time is asked once more: a busy node is no
// reason to restart a cluster.
const askAgain = 2

// ask puts the gate's question to the GCS at address, through the connection of the head's machine.
func ask(ctx context.Context, machine fleet.Machine, address string, shown gcs.Credential) (gcs.Table, error) {
	for again := 0; ; again++ {
		table, err := gcs.New(machine.HTTP(), address, shown).Status(ctx)
		if !silent(err) || again == askAgain || ctx.Err() != nil {
			return table, err
		}
	}
}

// Ask puts the gate's question to the GCS of a declared cluster, through its head's machine.
func Ask(ctx context.Context, spec Spec, machine fleet.Machine) (gcs.Table, error) {
	shown, err := Credential(ctx, spec, machine)
	if err != nil {
		return gcs.Table{}, err
	}
	return ask(ctx, machine, Address(spec), shown)
}

// Credential is what the GCS of a declared cluster wants to see, as its head's machine has it now. A
// key that may only look does not see the token: then the agent adds it on the node. A file that is gone
// makes no credential: what the GCS says to that is the answer.
func Credential(ctx context.Context, spec Spec, machine fleet.Machine) (gcs.Credential, error) {
	containers, err := machine.Containers(ctx)
	if err != nil {
		return gcs.Credential{}, &Error{Host: machine.Host(), Step: "list the containers", Cause: err}
	}
	head, _ := find(spec, containers)
	if !usesFile(head) {
		return gcs.Credential{Token: head.Spec.Env[authToken]}, nil // Only an image can bring one.
	}
	value, found, err := readToken(ctx, spec.Name, machine)
	switch {
	case err != nil:
		return gcs.Credential{}, &Error{Host: machine.Host(), Step: "read Ray's token", Cause: err}
	case value != "":
		return gcs.Credential{Token: value}, nil
	case found:
		return gcs.Credential{Cluster: spec.Name}, nil
	}
	return gcs.Credential{}, nil
}

// silent says whether the GCS took the question and gave no answer in time.
func silent(err error) bool {
	var known *gcs.Error
	return errors.As(err, &known) && known.Kind == gcs.Silent
}

// CheckReleased asks the GCS whether GPUs or placement groups are still taken. A cluster that gives no
// answer holds nothing.
func CheckReleased(ctx context.Context, spec Spec, machines map[string]fleet.Machine) error {
	var failed *GateError
	if err := CheckMembers(ctx, spec, machines, true); !errors.As(err, &failed) {
		return err
	}
	held := slices.DeleteFunc(failed.Findings, func(one Finding) bool { return one.Fault != Busy && one.Fault != LeftOver })
	if len(held) > 0 {
		return &GateError{Findings: held}
	}
	return nil
}

// Addresses are those by which Ray knows its living nodes.
func Addresses(ctx context.Context, spec Spec, machines map[string]fleet.Machine) ([]string, error) {
	head, _ := spec.head()
	machine, found := machines[head.Host]
	if !found {
		return nil, &Error{Host: head.Host, Step: "ask the GCS", Cause: errNoHead}
	}
	table, err := Ask(ctx, spec, machine)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, node := range table.Alive() {
		addresses = append(addresses, node.Address)
	}
	return addresses, nil
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
