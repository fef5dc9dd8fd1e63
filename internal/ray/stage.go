package ray

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
)

// trial is the role of a container in which a new image is tried.
const trial = "trial"

// trialTimeout bounds it: Python starts in a second, from a cold disk in some more.
const trialTimeout = time.Minute

// tryImage looks into a new image before the cluster that runs the old one is stopped for it. A
// cluster that is made anew finds out by starting.
func (a *applier) tryImage(ctx context.Context) error {
	head, _ := a.spec.head()
	machine := a.machines[head.Host]
	running, exists := find(a.spec, a.before[head.Host])
	if _, replaced := a.replace[head.Host]; !replaced || !exists {
		return nil
	}
	step := "try image " + a.spec.Image
	fail := func(err error) error { return &Error{Host: head.Host, Step: step, Cause: err} }
	declared, err := machine.Image(ctx, a.spec.Image)
	if err != nil {
		return fail(err)
	}
	if declared.ID == running.ImageID {
		return nil
	}
	a.progress(fmt.Sprintf("%s: trying image %s", head.Host, a.spec.Image))
	log, err := a.runTrial(ctx, machine)
	if err != nil {
		return fail(err)
	}
	contents, err := image.Parse(log)
	if err == nil && contents.Ray == "" {
		err = errors.New("the image has no Ray")
	}
	if err != nil {
		return &Error{Host: head.Host, Step: step, Cause: err, Evidence: log,
			Advice: "A cluster needs Ray in its image; NVIDIA's vLLM images have none since 26.04. The cluster runs on as it was. Nothing was changed."}
	}
	return nil
}

// runTrial runs the question to the image in a container of its own, and removes it.
func (a *applier) runTrial(ctx context.Context, machine fleet.Machine) (log string, err error) {
	if err := removeTrials(ctx, a.spec, machine, a.before[machine.Host()]); err != nil {
		return "", err
	}
	client, err := machine.Engine(ctx)
	if err != nil {
		return "", err
	}
	defer machine.Changed()
	id, err := client.Create(ctx, engine.ContainerSpec{
		Name: ContainerName(a.spec.Name) + "-" + trial, Image: a.spec.Image, Entrypoint: []string{}, Command: image.Command(),
		Labels: map[string]string{fleet.LabelResource: resource, fleet.LabelName: a.spec.Name, fleet.LabelRole: trial},
	})
	if err != nil {
		return "", err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), evidenceTimeout)
		defer cancel()
		err = errors.Join(err, client.Remove(after, id, 0))
	}()
	if err := client.Start(ctx, id); err != nil {
		return "", err
	}
	for deadline := time.Now().Add(trialTimeout); ; {
		container, err := client.Container(ctx, id)
		if err != nil {
			return "", err
		}
		if container.Status == "exited" || container.Status == "dead" {
			return client.Logs(ctx, id, logLines)
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("its Python did not end within %s", trialTimeout)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return "", err
		}
	}
}

// removeTrials removes what a killed apply left of a trial.
func removeTrials(ctx context.Context, spec Spec, machine fleet.Machine, containers []engine.Container) error {
	for _, one := range containers {
		if ours(spec, one) && isTrial(one) {
			if err := removeContainer(ctx, machine, one, rayGrace); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTrial says whether a container is one, of any cluster's: it holds nothing.
func isTrial(one engine.Container) bool { return one.Spec.Labels[fleet.LabelRole] == trial }
