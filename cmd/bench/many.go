package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// fewNodes and mostNodes are the sizes that are compared.
const (
	fewNodes  = 2
	mostNodes = 64
)

// crowd are simulated nodes in this process, and a workspace for each number of them.
type crowd struct {
	fleet  *hosttest.Fleet
	spaces map[int]workspace
}

// simulate starts the crowd once, with workspaces in which everything is applied.
func (b *bench) simulate(ctx context.Context) (*crowd, error) {
	if b.crowd != nil {
		return b.crowd, nil
	}
	dir := filepath.Join(b.dir, "simulated")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	started, err := hosttest.Start(dir, mostNodes) //nolint:contextcheck // its servers live until it is closed, whatever becomes of this call
	if err != nil {
		return nil, err
	}
	b.crowd = &crowd{fleet: started, spaces: map[int]workspace{}}
	for _, count := range []int{fewNodes, 16, mostNodes} {
		b.say("terraform apply of %d simulated nodes", count)
		one := workspace{dir: filepath.Join(dir, strconv.Itoa(count)), environment: b.idle.environment}
		values := struct {
			Provider string
			Hosts    []string
		}{Provider: started.ProviderConfig()}
		for _, host := range started.Hosts()[:count] {
			values.Hosts = append(values.Hosts, host.Address())
		}
		if err := one.write(files, "files/many.tf.tmpl", values); err != nil {
			return nil, err
		}
		if err := one.must(ctx, "init", "-input=false"); err != nil {
			return nil, err
		}
		if err := one.must(ctx, "apply", "-input=false", "-auto-approve"); err != nil {
			return nil, err
		}
		b.crowd.spaces[count] = one
	}
	return b.crowd, nil
}

// manyPlan is the idle plan of many nodes, against that of two; atOnce asks all at once instead of as
// many as Terraform does by default.
func (b *bench) manyPlan(id string, nodes int, atOnce bool) contest {
	plan := func(count int, flags ...string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			simulated, err := b.simulate(ctx)
			if err != nil {
				return 0, err
			}
			simulated.fleet.SetDelay(farDelay)
			defer simulated.fleet.SetDelay(0)
			where, before := simulated.spaces[count], simulated.fleet.Counters()
			took, err := timed(func(ctx context.Context) error { return where.idlePlan(ctx, flags...) })(ctx)
			if err != nil {
				return 0, err
			}
			return took, simulated.once(before, count)
		}
	}
	command, manner := "terraform plan", "10 at once, as Terraform asks by default"
	var flags []string
	if atOnce {
		flags = []string{"-parallelism=" + strconv.Itoa(nodes)}
		command, manner = command+" "+flags[0], "all at once"
	}
	return contest{
		id: id, unit: seconds, samples: b.options.samples,
		value: side{
			name: command, sample: plan(nodes, flags...),
			what: fmt.Sprintf("%s -detailed-exitcode (exit code 0) of %d simulated nodes that share this machine's cores, %s; %d ms added to each round trip",
				command, nodes, manner, 2*farDelay.Milliseconds()),
		},
		baseline: side{name: "two nodes", sample: plan(fewNodes), what: "the plan of two of these nodes"},
		floor: side{
			name: "terraform plan without resources", sample: timed(func(ctx context.Context) error { return b.idle.idlePlan(ctx) }),
			what: "the same command and provider with no resource to look at",
		},
	}
}

// once is an error unless each of the first nodes was connected to and looked at exactly once.
func (c *crowd) once(before []hosttest.Counters, count int) error {
	for i, now := range c.fleet.Counters()[:count] {
		logins, looks := now.Handshakes-before[i].Handshakes, now.Facts-before[i].Facts
		if logins != 1 || looks != 1 {
			return fmt.Errorf("node %d of %d saw %d logins and %d looks in one plan", i+1, count, logins, looks)
		}
	}
	return nil
}
