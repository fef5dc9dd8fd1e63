package client

import (
	"context"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// secretTimeout bounds work on a file of 64 bytes.
const secretTimeout = 10 * time.Second

var errSecret = fmt.Errorf("the agent runs, but the user's home did not answer within %s: is it on a network?", secretTimeout)

// ReadSecret implements agent.Secrets.
func (c *connection) ReadSecret(ctx context.Context, name string) (string, bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, secretTimeout, errSecret)
	defer cancel()
	var answer wire.SecretAnswer
	err := c.ask(ctx, "read secret "+name, wire.PathSecretRead, wire.SecretRequest{Name: name}, &answer)
	return answer.Value, answer.Found, err
}

// WriteSecret implements agent.Secrets.
func (c *connection) WriteSecret(ctx context.Context, name, value string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, secretTimeout, errSecret)
	defer cancel()
	return c.ask(ctx, "write secret "+name, wire.PathSecretWrite, wire.SecretRequest{Name: name, Value: value}, &struct{}{})
}

// RemoveSecret implements agent.Secrets.
func (c *connection) RemoveSecret(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, secretTimeout, errSecret)
	defer cancel()
	return c.ask(ctx, "remove secret "+name, wire.PathSecretRemove, wire.SecretRequest{Name: name}, &struct{}{})
}
