package ray

import (
	"context"
	"fmt"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// makeFolders makes the weights folder on every node whose container is about to mount it: the
// engine refuses to bind a folder that is not there, and would make it as root if it did not. The
// weights themselves come later.
func (a *applier) makeFolders(ctx context.Context) error {
	if a.spec.WeightsDir == "" {
		return nil
	}
	return onEach(ctx, append(a.replaced(Head), a.replaced(Worker)...), a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		folder := WeightsPath(a.spec.WeightsDir, a.facts[member.Host])
		if err := makeFolder(ctx, machine, folder); err != nil {
			user := a.facts[member.Host].User.Name
			return &Error{Host: member.Host, Step: "make folder " + folder, Cause: err,
				Advice: fmt.Sprintf("The weights must be writable by %s: sudo install -d -o %s %s, or choose a folder below the home with weights_dir. Nothing was changed.", user, user, folder)}
		}
		return nil
	})
}

// makeFolder opens a receiver of nothing on the folder, which makes it, and closes it again.
func makeFolder(ctx context.Context, machine fleet.Machine, folder string) error {
	client, err := machine.Agent(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := false
	err = client.Receive(ctx, agent.ReceiveRequest{Folder: folder, Address: "127.0.0.1", Secret: newSecret()}, func(event agent.TransferEvent) {
		if event.Listening != "" {
			made = true
			cancel()
		}
	})
	if made {
		return nil // What is left to say is that it was cancelled.
	}
	return err
}
