package fleet

import (
	"context"
	"io"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// outputLimit bounds what we read of a short command.
const outputLimit = 64 << 10

// run executes a short command and returns its output.
func run(ctx context.Context, ssh sshx.Client, command string) (string, error) {
	process, err := ssh.Start(ctx, command)
	if err != nil {
		return "", err
	}
	defer process.Close() //nolint:errcheck // the session is over either way
	_ = process.Stdin.Close()
	output, err := io.ReadAll(io.LimitReader(process.Stdout, outputLimit))
	if err != nil {
		return "", err
	}
	code, err := process.Wait()
	if err != nil {
		return "", err
	}
	if code < 0 {
		return "", errNoOutput
	}
	return string(output), nil
}

// starter lets the agent's client start its session over the connection.
func starter(ssh sshx.Client) client.Starter {
	return client.StarterFunc(func(ctx context.Context, command string) (*client.Process, error) {
		process, err := ssh.Start(ctx, command)
		return (*client.Process)(process), err
	})
}
