package ray

import (
	"context"
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
)

// prove begins what only a running container can show, while Ray starts in it: await wants the results.
func (a *applier) prove(ctx context.Context, member Member, id string) {
	begin := func(proof func() error) {
		a.proofs.Go(func() error {
			err := proof()
			if err != nil {
				select {
				case a.disproved <- err:
				default: // One is enough.
				}
			}
			return err
		})
	}
	if member.GPUs > 0 {
		begin(func() error { return a.proveGPUs(ctx, member, id) })
	}
	if member.Role == Head {
		// Every node has the same image id, so one answer does.
		begin(func() (err error) {
			a.contents, err = a.probe(ctx, member, id)
			return err
		})
	}
}

// proofTries is how often a command is tried in a container that runs: it can end and be started again
// in between.
const proofTries = 3

// exec runs a command in a member's container. While the container is not running it waits: poll sees
// why, starts it again or ends the apply, and with it the wait.
func (a *applier) exec(ctx context.Context, member Member, id, step string, command []string) (engine.ExecResult, error) {
	fail := func(err error) (engine.ExecResult, error) {
		return engine.ExecResult{}, &Error{Host: member.Host, Step: step, Cause: err}
	}
	client, err := a.machines[member.Host].Engine(ctx)
	if err != nil {
		return fail(err)
	}
	for tries := 1; ; {
		result, err := client.Exec(ctx, id, command)
		if err == nil {
			return result, nil
		}
		container, gone := client.Container(ctx, id)
		if gone != nil || container.Status == running && tries == proofTries {
			return fail(err)
		}
		if container.Status == running {
			tries++
		}
		if stopped := pause(ctx, pollEvery); stopped != nil {
			return fail(stopped)
		}
	}
}

// probe asks the head's container what its image contains.
func (a *applier) probe(ctx context.Context, head Member, id string) (image.Contents, error) {
	step := "see what image " + a.spec.Image + " contains"
	result, err := a.exec(ctx, head, id, step, image.Command())
	if err != nil {
		return image.Contents{}, err
	}
	if result.ExitCode != 0 {
		return image.Contents{}, &Error{Host: head.Host, Step: step, Evidence: strings.TrimSpace(result.Stdout + result.Stderr),
			Cause: fmt.Errorf("python3 ended with code %d", result.ExitCode), Advice: "The image must have Ray and vLLM in the Python that python3 is."}
	}
	contents, err := image.Parse(result.Stdout)
	if err != nil {
		return contents, &Error{Host: head.Host, Step: step, Cause: err}
	}
	a.progress("the image has " + contents.String())
	return contents, nil
}

// proveGPUs counts the GPUs inside of a new container: `--num-gpus` is believed by Ray whether they
// are there or not.
func (a *applier) proveGPUs(ctx context.Context, member Member, id string) error {
	step := "count GPUs in container " + ContainerName(a.spec.Name)
	result, err := a.exec(ctx, member, id, step, []string{"nvidia-smi", "-L"})
	if err != nil {
		return err
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
}
