package ray

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// workerTries is how often a worker's container is started in all. Ray gives up on a head that does
// not answer at once; a reason that its log tells is not tried again.
const workerTries = 3

// usageError is the exit code of a command line that Ray does not take.
const usageError = 2

// alive fails with an [*Error] that holds an [*ExitError] if a member's container ended for good.
func (a *applier) alive(ctx context.Context, members []Member) error {
	return onEach(ctx, members, a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		a.lock.Lock()
		id, known := a.created[member.Host]
		a.lock.Unlock()
		if !known {
			return nil // It was not to be replaced and is not there: the gate names it.
		}
		fail := func(err error) error {
			return &Error{Host: member.Host, Step: "watch container " + ContainerName(a.spec.Name), Cause: err}
		}
		client, err := machine.Engine(ctx)
		if err != nil {
			return fail(err)
		}
		container, err := client.Container(ctx, id)
		if err != nil {
			return fail(err)
		}
		if container.Status == running || container.Status == "created" {
			return nil
		}
		failed := a.exited(ctx, member, container)
		if failed.Finding.Cause != "" || container.ExitCode == usageError || !a.again(member) {
			return failed
		}
		a.progress(fmt.Sprintf("%s: %v; starting it again", member.Host, failed.Cause))
		if err := client.Start(ctx, id); err != nil {
			return fail(err)
		}
		return nil
	})
}

// again says whether a member's container may be started once more, and counts.
func (a *applier) again(member Member) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	_, replaced := a.replace[member.Host]
	a.tries[member.Host]++
	return replaced && member.Role == Worker && a.tries[member.Host] < workerTries
}

// exited is the error for a container that ended, with its log and what is known of such a log.
func (a *applier) exited(ctx context.Context, member Member, container engine.Container) *Error {
	log, finding := a.log(ctx, member.Host)
	return &Error{
		Host: member.Host, Step: "start " + string(member.Role) + " of the cluster", Evidence: log, Finding: finding,
		Cause:  &ExitError{Container: container.Spec.Name, Status: container.Status, ExitCode: container.ExitCode, OOMKilled: container.OOMKilled},
		Advice: "The container is left as it is for a look: docker logs " + container.Spec.Name,
	}
}

// log is the end of the log on a host, without secrets, and the cause that it shows together with what is
// known of the nodes. Where no container was made there is none.
func (a *applier) log(ctx context.Context, host string) (string, diagnose.Finding) {
	a.lock.Lock()
	id, made := a.created[host]
	a.lock.Unlock()
	log := ""
	if made {
		client, err := a.machines[host].Engine(ctx)
		if err == nil {
			log, err = client.Logs(ctx, id, logLines)
		}
		if err != nil {
			log = "The log could not be read: " + err.Error()
		}
	}
	finding, _ := diagnose.Explain(log, a.evidence())
	return diagnose.Mask(diagnose.Plain(log)), finding
}

// evidence is what is known of the nodes, for a diagnosis.
func (a *applier) evidence() diagnose.Evidence {
	evidence := diagnose.Evidence{Nodes: map[string]diagnose.Node{}, Image: a.spec.Image, Port: a.spec.port()}
	for _, member := range a.spec.Members {
		facts := a.facts[member.Host]
		evidence.Nodes[member.Host] = diagnose.Node{Identity: member.Address, Facts: &facts}
	}
	return evidence
}

// named says of GPUs that are taken, by whom: the living actors of their nodes.
func named(ctx context.Context, client *gcs.Client, findings []Finding, spec Spec) []Finding {
	if !slices.ContainsFunc(findings, func(one Finding) bool { return one.Fault == Busy }) {
		return findings
	}
	actors, err := client.Actors(ctx)
	if err != nil {
		return findings // The finding stands without names.
	}
	findings = slices.Clone(findings)
	for i, finding := range findings {
		for _, actor := range actors {
			at := slices.IndexFunc(spec.Members, func(one Member) bool { return one.Host == finding.Host && one.Address == actor.Address })
			if finding.Fault == Busy && at >= 0 {
				findings[i].Sentence += fmt.Sprintf("; actor %s runs there in process %d", actor.Class, actor.PID)
			}
		}
	}
	return findings
}

// explain adds the log of the host that a failure is about, and the next step.
func (a *applier) explain(ctx context.Context, head Member, step string, err error) error {
	var known *Error
	if errors.As(err, &known) || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	// The log is read also when the time is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), evidenceTimeout)
	defer cancel()
	about := head
	var gate *GateError
	if errors.As(err, &gate) {
		for _, finding := range gate.Findings {
			if at := slices.IndexFunc(a.spec.Members, func(member Member) bool { return member.Host == finding.Host }); at >= 0 {
				about = a.spec.Members[at]
				break
			}
		}
	}
	failed := &Error{Host: about.Host, Step: step, Cause: err, Advice: advice(err, about, Address(a.spec))}
	failed.Evidence, failed.Finding = a.log(ctx, about.Host)
	return failed
}

// advice is the next step for what the gate or the GCS said.
func advice(err error, about Member, cluster string) string {
	if unauthenticated(err) {
		return "Something else than the declared authentication is in force: the head's log says which token it read. Apply again for a new one, or do without: authentication = \"none\"."
	}
	var gate *GateError
	if !errors.As(err, &gate) || len(gate.Findings) == 0 {
		return "The head's log says how far Ray came. On a loaded machine the next apply may be enough."
	}
	switch gate.Findings[0].Fault {
	case NotMember:
		return fmt.Sprintf("From %s the head must be reachable at %s over the fabric, and back: check a firewall on either side (nft list ruleset), the cable and the MTU.", about.label(), cluster)
	case WrongAddress, SameAddress:
		return "Another `ray start` than ours runs there. Stop it and apply again."
	case Stranger:
		return "Stop the Ray outside of this cluster that joined it (ray stop, or its container), and apply again."
	case FewGPUs:
		return "Compare nvidia-smi -L on the host and in the container."
	case Unprotected:
		return "The image changes how Ray starts: compare its entrypoint and /etc/ray. To run without protection, say so: authentication = \"none\"."
	case Busy, LeftOver:
		return "Something outside of this configuration uses the cluster: see docker exec ray-… ray status. A left-over group of a killed server ends with the cluster: terraform apply -replace of it."
	}
	return ""
}
