package main

import (
	"context"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
)

// planParts takes the steps of a look at the head one after the other, on new connections: what an idle
// plan does there, by the same code.
func (b *bench) planParts(ctx context.Context) ([]Part, error) {
	defaults := fleet.Defaults{User: b.lab.User, PrivateKeyFile: b.lab.Key}
	where := fleet.Connection{Host: b.address(0), Port: b.proxies[0].Port(), HostKey: b.keys[0]}
	pool := fleet.NewPool(defaults)
	defer pool.Close()
	machine := pool.Machine(where)
	client := vllm.NewClient(machine.HTTP(), b.served(b.cluster(name)).Listen())
	steps := []struct {
		name string
		act  func(context.Context) error
	}{
		{"ssh login", func(ctx context.Context) error {
			line, err := sshx.Dial(ctx, sshx.Config{Host: where.Host, Port: where.Port, User: defaults.User, HostKey: where.HostKey, PrivateKeyFile: defaults.PrivateKeyFile})
			if err != nil {
				return err
			}
			return line.Close()
		}},
		{"agent", func(ctx context.Context) error {
			_, err := machine.Agent(ctx)
			return err
		}},
		{"facts", func(ctx context.Context) error {
			_, err := machine.Facts(ctx)
			return err
		}},
		{"docker", func(ctx context.Context) error {
			_, err := machine.Containers(ctx)
			return err
		}},
		{"image", func(ctx context.Context) error {
			_, err := machine.Image(ctx, b.lab.Images.VLLM)
			return err
		}},
		{"gcs", func(ctx context.Context) error {
			_, err := ray.Ask(ctx, b.cluster(name), machine)
			return err
		}},
		{"health", client.Health},
	}
	var parts []Part
	for _, step := range steps {
		start := time.Now()
		if err := step.act(ctx); err != nil {
			return nil, err
		}
		parts = append(parts, Part{Name: step.name, Value: time.Since(start).Seconds()})
	}
	// The agent's start logs in as well: on a connection of its own, since a machine has but one.
	parts[1].Value = max(0, parts[1].Value-parts[0].Value)
	return parts, nil
}
