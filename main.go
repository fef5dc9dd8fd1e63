// Command terraform-provider-spark is the Terraform provider for NVIDIA DGX Spark machines.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/spark-stack/terraform-provider-spark/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
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
