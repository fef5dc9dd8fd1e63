package ray

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
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
	a.prove(ctx, member, id)
	return nil
}

// awaitPort proves that nothing listens on the GCS port.
func (a *applier) awaitPort(ctx context.Context, head Member, machine fleet.Machine) error {
	step := portStep(a.spec)
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
			return portTaken(a.spec, head, a.before[head.Host])
		}
		if err := pause(ctx, pollEvery); err != nil {
			return &Error{Host: head.Host, Step: step, Cause: err}
		}
	}
}

// await waits until the gate is passed and the proofs are in.
func (a *applier) await(ctx context.Context) error {
	head, _ := a.spec.head()
	want := Want(a.spec)
	open := false
	err := a.poll(ctx, memberTimeout, a.spec.Members, func(table gcs.Table) []Finding {
		open = table.Open
		return Gate(want, table, a.facts)
	})
	if err != nil {
		return a.explain(ctx, head, "wait until all members are in Ray's node table", err)
	}
	if err := a.proofs.Wait(); err != nil {
		return err
	}
	if finding := protection(a.spec, a.contents, open); len(finding) > 0 {
		return a.explain(ctx, head, "prove that Ray asks for its token", &GateError{Findings: finding})
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
		select {
		case err := <-a.disproved:
			return err
		default:
		}
		if why := (&GateError{Findings: findings, Unanswered: answer}).Error(); why != waiting {
			waiting = why
			a.progress("waiting: " + why)
		}
		if time.Now().After(deadline) {
			return &GateError{Findings: named(ctx, client, findings, a.spec), Unanswered: answer}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return ended(err)
		}
	}
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
