package ray

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// startHead makes the head and waits for its GCS.
func (a *applier) startHead(ctx context.Context) error {
	for _, head := range a.replaced(Head) {
		machine := a.machines[head.Host]
		if err := a.awaitPort(ctx, head, machine); err != nil {
			return err
		}
		if err := a.start(ctx, head, machine); err != nil {
			return err
		}
		a.progress(fmt.Sprintf("%s: waiting for the GCS at %s", head.Host, Address(a.spec)))
		err := a.poll(ctx, gcsTimeout, []Member{head}, func(gcs.Table) []Finding { return nil })
		if err != nil {
			return a.explain(ctx, head, "wait for the GCS at "+Address(a.spec), err)
		}
	}
	return nil
}

// startWorkers makes the workers, all at once: the head is up, so their joins do not race it.
func (a *applier) startWorkers(ctx context.Context) error {
	return onEach(ctx, a.replaced(Worker), a.machines, a.start)
}

// start creates and starts one member's container.
func (a *applier) start(ctx context.Context, member Member, machine fleet.Machine) error {
	defer machine.Changed()
	container := a.specs[member.Host]
	a.progress(fmt.Sprintf("%s: starting %s %s (%s)", member.Host, member.Role, container.Name, a.replace[member.Host]))
	fail := func(step string, err error) error {
		return &Error{Host: member.Host, Step: step + " container " + container.Name, Cause: err}
	}
	client, err := machine.Engine(ctx)
	if err != nil {
		return fail("create", err)
	}
	id, err := client.Create(ctx, container)
	if err != nil {
		return fail("create", err)
	}
	a.lock.Lock()
	a.created[member.Host] = id
	a.lock.Unlock()
	if err := client.Start(ctx, id); err != nil {
		return fail("start", err)
	}
	return nil
}

// awaitPort proves that nothing listens on the GCS port.
func (a *applier) awaitPort(ctx context.Context, head Member, machine fleet.Machine) error {
	step := fmt.Sprintf("check that port %d is free", a.spec.port())
	deadline := time.Now().Add(portTimeout)
	for {
		machine.Changed()
		facts, err := machine.Facts(ctx)
		if err != nil {
			return &Error{Host: head.Host, Step: step, Cause: err}
		}
		if !slices.Contains(facts.Listening, a.spec.port()) {
			return nil
		}
		if time.Now().After(deadline) {
			return portTaken(head, a.spec.port(), step, a.before[head.Host])
		}
		if err := pause(ctx, pollEvery); err != nil {
			return &Error{Host: head.Host, Step: step, Cause: err}
		}
	}
}

// await waits until the gate is passed.
func (a *applier) await(ctx context.Context) error {
	head, _ := a.spec.head()
	want := Want(a.spec)
	var contents image.Contents
	var group errgroup.Group // proofs that do not need one another
	group.Go(func() error { return a.proveGPUs(ctx) })
	if a.spec.Authentication == AuthToken {
		group.Go(func() (err error) {
			contents, err = a.probe(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	err := a.poll(ctx, memberTimeout, a.spec.Members, func(table gcs.Table) []Finding {
		return append(Gate(want, table, a.facts), protection(a.spec, contents, table)...)
	})
	if err != nil {
		return a.explain(ctx, head, "wait until all members are in Ray's node table", err)
	}
	a.progress(fmt.Sprintf("%d nodes are members of the cluster at %s", len(want), Address(a.spec)))
	return nil
}

// poll asks the GCS until it answers and judge finds nothing, watching the members' containers. It
// ends at once when one of them ended, and when the GCS wants another token.
func (a *applier) poll(ctx context.Context, limit time.Duration, members []Member, judge func(gcs.Table) []Finding) error {
	machine := a.machines[a.headHost()]
	shown, err := Credential(ctx, a.spec, machine)
	if err != nil {
		return err
	}
	client := gcs.New(machine.HTTP(), Address(a.spec), shown)
	deadline := time.Now().Add(limit)
	waiting := ""
	ended := func(err error) error {
		if waiting != "" {
			err = fmt.Errorf("%w; the last answer: %s", err, waiting)
		}
		return err
	}
	for {
		table, answer := client.Status(ctx)
		var findings []Finding
		if answer == nil {
			findings = judge(table)
		}
		switch {
		case answer == nil && len(findings) == 0:
			return nil
		case ctx.Err() != nil:
			return ended(ctx.Err())
		case unauthenticated(answer), answer != nil && lost(answer):
			return answer
		}
		if err := a.alive(ctx, members); err != nil {
			return err
		}
		if why := (&GateError{Findings: findings, Unanswered: answer}).Error(); why != waiting {
			waiting = why
			a.progress("waiting: " + why)
		}
		if time.Now().After(deadline) {
			return &GateError{Findings: findings, Unanswered: answer}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return ended(err)
		}
	}
}

// alive fails with an [*Error] that holds an [*ExitError] if a member's container ended.
func (a *applier) alive(ctx context.Context, members []Member) error {
	return onEach(ctx, members, a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		id, known := a.created[member.Host]
		if !known {
			return nil // It was not to be replaced and is not there: the gate names it.
		}
		client, err := machine.Engine(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "watch container " + ContainerName(a.spec.Name), Cause: err}
		}
		container, err := client.Container(ctx, id)
		if err != nil {
			return &Error{Host: member.Host, Step: "watch container " + ContainerName(a.spec.Name), Cause: err}
		}
		if container.Status == running || container.Status == "created" {
			return nil
		}
		log, err := client.Logs(ctx, id, logLines)
		if err != nil {
			log = "The log could not be read: " + err.Error()
		}
		return &Error{
			Host: member.Host, Step: "start " + string(member.Role) + " of the cluster", Evidence: log,
			Cause:  &ExitError{Container: container.Spec.Name, Status: container.Status, ExitCode: container.ExitCode, OOMKilled: container.OOMKilled},
			Advice: "The container is left as it is for a look: docker logs " + container.Spec.Name,
		}
	})
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
	if id, made := a.created[about.Host]; made {
		client, engineErr := a.machines[about.Host].Engine(ctx)
		if engineErr == nil {
			failed.Evidence, engineErr = client.Logs(ctx, id, logLines)
		}
		if engineErr != nil {
			failed.Evidence = "The log could not be read: " + engineErr.Error()
		}
	}
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
	case WrongAddress:
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

// proveGPUs counts the GPUs inside of the new containers: `--num-gpus` is believed by Ray whether
// they are there or not.
func (a *applier) proveGPUs(ctx context.Context) error {
	members := slices.Concat(a.replaced(Head), a.replaced(Worker))
	return onEach(ctx, members, a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		if member.GPUs == 0 {
			return nil
		}
		step := "count GPUs in container " + ContainerName(a.spec.Name)
		client, err := machine.Engine(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: step, Cause: err}
		}
		result, err := client.Exec(ctx, a.created[member.Host], []string{"nvidia-smi", "-L"})
		if err != nil {
			// A container that ended is reported with its log.
			return errors.Join(a.alive(ctx, []Member{member}), &Error{Host: member.Host, Step: step, Cause: err})
		}
		if result.ExitCode == 126 || result.ExitCode == 127 {
			return nil // The image's driver capabilities leave the tool out; it tells nothing.
		}
		count := 0
		for line := range strings.Lines(result.Stdout) {
			if strings.HasPrefix(line, "GPU ") {
				count++
			}
		}
		if count >= member.GPUs {
			return nil
		}
		return &Error{
			Host: member.Host, Step: step, Evidence: strings.TrimSpace(result.Stdout + result.Stderr),
			Cause:  fmt.Errorf("%d of %d GPUs are visible (nvidia-smi -L, exit code %d)", count, member.GPUs, result.ExitCode),
			Advice: "The host sees them, the container does not: check the NVIDIA container toolkit (nvidia-ctk runtime configure --runtime=docker, then restart Docker).",
		}
	})
}

// pause waits, or until the context ends.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
