package fleet

import (
	"context"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// starter lets the agent's client start its session over the connection.
func starter(ssh sshx.Client) client.Starter {
	return client.StarterFunc(func(ctx context.Context, command string) (*client.Process, error) {
		process, err := ssh.Start(ctx, command)
		return (*client.Process)(process), err
	})
}
