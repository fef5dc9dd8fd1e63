// Package command holds what the program does besides serving Terraform: `terraform-provider-spark <name>`.
package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/command/agentfile"
	"github.com/spark-stack/terraform-provider-spark/internal/command/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/command/watch"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Command is one of them.
type Command struct {
	// Summary is one line of the help.
	Summary string
	// Run returns the exit code. 1 is for what could not be done, 2 is left to Terraform's sense of it:
	// what is differs from what shall be.
	Run func(ctx context.Context, args []string, streams Streams) int
}

// All are the commands by name.
func All() map[string]Command {
	return map[string]Command{
		"agent": {
			Summary: "write the program that runs on a node, for an SSH key that may only look",
			Run: func(_ context.Context, args []string, streams Streams) int {
				return agentfile.Run(args, streams.Out, streams.Err)
			},
		},
		"diagnose": {
			Summary: "say what saved logs of Ray and vLLM mean",
			Run: func(ctx context.Context, args []string, streams Streams) int {
				return diagnose.Run(ctx, args, streams.In, streams.Out, streams.Err)
			},
		},
		"watch": {
			Summary: "show how far an apply is, in a second terminal",
			Run: func(ctx context.Context, args []string, streams Streams) int {
				return watch.Run(ctx, args, streams.Out, streams.Err)
			},
		},
	}
}

// Run runs the command that the arguments name. The first argument must not be an option.
func Run(ctx context.Context, args []string, streams Streams) int {
	commands := All()
	if known, exists := commands[args[0]]; exists {
		return known.Run(ctx, args[1:], streams)
	}
	code, out := 1, streams.Err
	if args[0] == "help" {
		code, out = 0, streams.Out
	} else if _, err := fmt.Fprintf(out, "%q is no command of this program. ", args[0]); err != nil {
		return 1
	}
	if _, err := fmt.Fprintln(out, "Without arguments it is a Terraform provider. Commands:"); err != nil {
		return 1
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		if _, err := fmt.Fprintf(out, "  %-10s %s\n", name, commands[name].Summary); err != nil {
			return 1
		}
	}
	return code
}
