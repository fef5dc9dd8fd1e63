// Command bench measures what the provider costs, against what people use today and against what the
// machine allows, on the lab. Both sides of a ratio run in the same lab in the same run, in turns.
//
// It exits with 2 when it cannot start (no lab, or a lab that somebody uses) and with 1 when a
// measurement failed. It leaves the lab as it was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the command line.
type options struct {
	output    string
	provider  string
	only      []string
	samples   int
	rounds    int
	alongside bool
}

// errStart marks what keeps the bench from starting: exit code 2.
var errStart = errors.New("cannot start")

// cleanupLimit bounds what is done after the last figure, or after Ctrl-C.
const cleanupLimit = 2 * time.Minute

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) > 0 && (arguments[0] == sendCommand || arguments[0] == receiveCommand) {
		return stream(ctx, arguments, stdout, stderr)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var chosen options
	var only string
	flags.StringVar(&chosen.output, "o", "build/bench.json", "file for the figures")
	flags.StringVar(&chosen.provider, "provider", "build/terraform-provider-spark", "the provider's program")
	flags.StringVar(&only, "only", "", "comma-separated ids of figures; empty measures all")
	flags.IntVar(&chosen.samples, "samples", 5, "samples of a figure that takes seconds")
	flags.IntVar(&chosen.rounds, "rounds", 3, "samples of apply_warm and cluster_up at most; it ends after the last that fits into five minutes")
	flags.BoolVar(&chosen.alongside, "alongside", false, "measure although other Ray or vLLM containers run on the lab")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	if only != "" {
		chosen.only = strings.Split(only, ",")
	}
	figures, err := measure(ctx, chosen, stderr)
	if len(figures) > 0 {
		table(stdout, figures)
		if writeErr := write(chosen.output, figures); writeErr != nil {
			err = errors.Join(err, writeErr)
		}
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errStart):
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	return 1
}

// measure runs the chosen figures; those that were measured before a failure are returned beside it.
func measure(ctx context.Context, chosen options, stderr io.Writer) (figures []Figure, err error) {
	for _, id := range chosen.only {
		if !slices.Contains(ids(), id) {
			return nil, fmt.Errorf("%w: there is no figure %s; there are: %s", errStart, id, strings.Join(ids(), ", "))
		}
	}
	b, err := open(ctx, chosen, stderr)
	if err != nil {
		return nil, err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		err = errors.Join(err, b.close(after))
	}()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	for _, one := range b.contests() {
		if len(chosen.only) > 0 && !slices.Contains(chosen.only, one.id) {
			continue
		}
		figure, err := one.run(ctx, b.say)
		if err != nil {
			return figures, fmt.Errorf("%s: %w", one.id, err)
		}
		figures = append(figures, figure)
	}
	return figures, nil
}

// ids are the figures in the order of measurement: apply_warm leaves the deployment that those after it
// look at.
func ids() []string {
	return []string{
		idPlan16, idPlan64, idPlanAtOnce, idFacts, idCluster, idApply,
		idPlan, idPlanFar, idHandshakes, idGate, idCopy,
	}
}

// The figures.
const (
	idFacts      = "facts"
	idCluster    = "cluster_up"
	idApply      = "apply_warm"
	idPlan       = "noop_plan_2n"
	idPlanFar    = "noop_plan_2n_20ms"
	idPlan16     = "noop_plan_16n"
	idPlan64     = "noop_plan_64n"
	idPlanAtOnce = "noop_plan_64n_at_once"
	idHandshakes = "ssh_handshakes"
	idGate       = "gate"
	idCopy       = "weights_copy_2n"
)

// contests are the figures with their sides.
func (b *bench) contests() []contest {
	return []contest{
		b.manyPlan(idPlan16, 16, false), b.manyPlan(idPlan64, mostNodes, false), b.manyPlan(idPlanAtOnce, mostNodes, true),
		b.factsCall(), b.clusterUp(), b.apply(), b.plan(idPlan, 0), b.plan(idPlanFar, farDelay), b.handshakes(), b.gate(), b.copy(),
	}
}
