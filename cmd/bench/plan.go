package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// plan is the idle plan: everything is up, nothing has changed, and exit code 0 is to say so.
func (b *bench) plan(id string, oneWay time.Duration) contest {
	// Recorded anew for each figure: what lies between the figures is not its business.
	recorded := map[string]bool{}
	ready := func(ctx context.Context, script string) error {
		if err := b.deploy(ctx); err != nil {
			return err
		}
		if script != "" && !recorded[script] {
			if _, err := b.script(ctx, script, "record"); err != nil {
				return err
			}
			recorded[script] = true
		}
		b.setDelay(oneWay)
		return nil
	}
	by := func(script string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			defer b.setDelay(0)
			if err := ready(ctx, script); err != nil {
				return 0, err
			}
			return timed(func(ctx context.Context) error {
				_, err := b.script(ctx, script, "check")
				return err
			})(ctx)
		}
	}
	terraform := func(where *workspace) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			defer b.setDelay(0)
			if err := ready(ctx, ""); err != nil {
				return 0, err
			}
			return timed(func(ctx context.Context) error { return where.idlePlan(ctx) })(ctx)
		}
	}
	line := "no added delay"
	if oneWay > 0 {
		line = fmt.Sprintf("%d ms added to each round trip", 2*oneWay.Milliseconds())
	}
	return contest{
		id: id, unit: seconds, samples: b.options.samples,
		value: side{
			name: "terraform plan", sample: terraform(&b.real),
			what: "terraform plan -detailed-exitcode (exit code 0) of two nodes, a cluster and a deployment that are up; " + line + "; all sides reach the nodes through the same TCP proxies",
		},
		baseline: side{
			name: "ssh, one connection a check", sample: by("checks.sh"),
			what: "a shell script that compares 13 facts over OpenSSH, one after the other: address, nvidia-smi -L, image id, docker inspect and weight files on both nodes, server, ray.nodes() by docker exec, /health",
		},
		floor: side{
			name: "terraform plan without resources", sample: terraform(&b.idle),
			what: "the same command and provider with no resource to look at: start of the processes, schema, configuration",
		},
		parts: func(ctx context.Context) ([]Part, error) {
			defer b.setDelay(0)
			if err := ready(ctx, ""); err != nil {
				return nil, err
			}
			return b.planParts(ctx)
		},
		also: []side{{
			name: "ssh, one connection a node", sample: by("together.sh"),
			what: "the same facts by one remote script a node, both nodes at once",
		}},
	}
}

// idlePlan plans once and takes everything but "no changes" as an error.
func (w *workspace) idlePlan(ctx context.Context, flags ...string) error {
	code, output, err := w.run(ctx, append([]string{"plan", "-input=false", "-detailed-exitcode", "-no-color"}, flags...)...)
	switch {
	case err != nil:
		return fmt.Errorf("terraform plan: %w: %s", err, tail(output))
	case code == 2:
		return errors.New("terraform plan found changes where nothing has changed: " + tail(output))
	case code != 0:
		return fmt.Errorf("terraform plan: exit code %d: %s", code, tail(output))
	}
	return nil
}
