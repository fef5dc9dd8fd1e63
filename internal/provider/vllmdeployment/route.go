package vllmdeployment

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// announce says before an update what it will copy, and which way: a hundred gigabytes over the wrong network are
// an hour, in which the server is down. Where nothing is copied it says nothing; what fails here fails elsewhere
// with its reason. The plan's attributes do not say it: they must not differ when a file came or went since.
func announce(ctx context.Context, deployment opened, manifest weights.Manifest, diags *diag.Diagnostics) {
	hosts, err := vllm.Hosts(ctx, deployment.spec, deployment.machines)
	if err != nil {
		return
	}
	listings, err := weights.Look(ctx, manifest, hosts)
	if err != nil {
		return
	}
	if manifest, listings, err = weights.Prove(ctx, manifest, hosts, listings, weights.Quick); err != nil {
		return
	}
	var prefer []string
	over := map[string]string{}
	for _, host := range hosts {
		prefer = append(prefer, host.Machine.Host())
		facts, err := host.Machine.Facts(ctx)
		if err != nil {
			return
		}
		over[host.Machine.Host()] = network(facts, host.Address)
		if host.Encrypt {
			over[host.Machine.Host()] += ", encrypted"
		}
	}
	copies, err := weights.Plan(manifest, listings, prefer)
	if err != nil || len(copies) == 0 {
		return
	}
	var lines []string
	total := int64(0)
	for _, route := range weights.Routes(copies) {
		total += route.Bytes
		lines = append(lines, fmt.Sprintf("%s -> %s over %s: %d files, %s", strings.Join(route.From, ", "), route.To, over[route.To], route.Files, weights.Size(route.Bytes)))
	}
	diags.AddAttributeWarning(path.Root("model"), fmt.Sprintf("vllm_deployment %s: apply copies %s of weights", deployment.spec.Name, weights.Size(total)),
		strings.Join(lines, "\n")+"\n\nWatch it in a second terminal: terraform-provider-spark watch")
}

// network is the subnet of an address on a node.
func network(facts agent.Facts, address string) string {
	for _, one := range facts.Interfaces {
		for _, prefix := range one.Addresses {
			if prefix.Addr().String() == address {
				return netip.PrefixFrom(prefix.Addr(), prefix.Bits()).Masked().String()
			}
		}
	}
	return address
}
