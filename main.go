// Command terraform-provider-spark is the Terraform provider for NVIDIA DGX Spark machines.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/spark-stack/terraform-provider-spark/internal/command"
	"github.com/spark-stack/terraform-provider-spark/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(runCommand())
	}
	debug := flag.Bool("debug", false, "serve for a debugger, and print how Terraform attaches")
	flag.Parse()
	if !*debug {
		if err := quiet(os.Getenv, os.Setenv); err != nil {
			log.Fatal(err)
		}
	}
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/spark-stack/spark",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}

// runCommand runs what the first argument names, and returns the exit code. Terraform itself starts a
// provider without arguments.
func runCommand() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command.Run(ctx, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
