package ray

import (
	"context"
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/image"
)

// probe asks the new head's container what its image contains. Every node has the same image id, so
// one answer does.
func (a *applier) probe(ctx context.Context) (image.Contents, error) {
	head, _ := a.spec.head()
	machine := a.machines[head.Host]
	step := "see what image " + a.spec.Image + " contains"
	client, err := machine.Engine(ctx)
	if err != nil {
		return image.Contents{}, &Error{Host: head.Host, Step: step, Cause: err}
	}
	result, err := client.Exec(ctx, a.created[head.Host], image.Command())
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("python3: exit code %d: %s", result.ExitCode, strings.TrimSpace(result.Stderr))
	}
	var contents image.Contents
	if err == nil {
		contents, err = image.Parse(result.Stdout)
	}
	if err != nil {
		return contents, &Error{Host: head.Host, Step: step, Cause: err}
	}
	return contents, nil
}
