package ray

import (
	"context"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// After a rank's end the driver gives its memory back by and by: a minute and more has been seen on
// GB10. A cluster that starts into that finds less than there is.
const (
	memoryTimeout = 90 * time.Second
	memoryEvery   = time.Second
	// memoryStep is how much more a second must bring to be waited for, in bytes.
	memoryStep = 256 << 20
)

// awaitMemory waits until the memory of the removed ranks is back on the nodes whose container is
// replaced. Without a server there was none to speak of. It ends when no more comes, and never fails
// an apply: whether the memory is enough, vLLM itself knows.
func (a *applier) awaitMemory(ctx context.Context) error {
	served := false
	for _, containers := range a.before {
		served = served || len(servers(a.spec, containers)) > 0
	}
	if !served {
		return nil
	}
	return onEach(ctx, append(a.replaced(Head), a.replaced(Worker)...), a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		available := func() (int64, error) {
			machine.Changed()
			facts, err := machine.Facts(ctx)
			if err != nil {
				return 0, &Error{Host: member.Host, Step: "wait for the memory of the removed ranks", Cause: err}
			}
			return facts.Memory.Available, nil
		}
		before, err := available()
		for deadline := time.Now().Add(memoryTimeout); err == nil && time.Now().Before(deadline); {
			if err := pause(ctx, memoryEvery); err != nil {
				return &Error{Host: member.Host, Step: "wait for the memory of the removed ranks", Cause: err}
			}
			var now int64
			if now, err = available(); err == nil && now-before < memoryStep {
				return nil
			}
			a.progress(fmt.Sprintf("%s: memory comes back, %d MiB available", member.Host, now>>20))
			before = now
		}
		return err
	})
}
