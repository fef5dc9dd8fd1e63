package raycluster

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// ImportState implements resource.ResourceWithImportState: "name@[user@]head-host[:port]". The head's container
// tells what was declared; all else is found by the read that follows.
func (r *clusterResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	if r.Waits(&response.Diagnostics) {
		return
	}
	doing := "import ray_cluster " + request.ID
	name, where, both := strings.Cut(request.ID, "@")
	address, err := shared.ParseAddress(where)
	if !both || name == "" || err != nil {
		response.Diagnostics.AddError("Unable to "+doing, "The id of a cluster is name@head-host, such as spark@10.1.230.180, with [user@] before and [:port] behind the host where the configuration has them.")
		return
	}
	login := shared.Connection{ProxyJump: types.ListNull(types.StringType)}
	if address.User != "" {
		login.User = types.StringValue(address.User)
	}
	if address.Port != 0 {
		login.Port = types.Int64Value(int64(address.Port))
	}
	spec, err := ray.Discover(ctx, name, r.Data.Pool.Machine(login.To(address.Host)))
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Empty(), doing, err)
		return
	}
	if spec.Members[0].Host != address.Host {
		response.Diagnostics.AddError("Unable to "+doing, "The cluster knows its head as "+spec.Members[0].Host+". Import it as "+name+"@"+spec.Members[0].Host+".")
		return
	}
	imported(ctx, spec, login, &response.State, &response.Diagnostics)
}

// imported writes what was declared. All members are reached as the head is.
func imported(ctx context.Context, spec ray.Spec, login shared.Connection, state *tfsdk.State, diags *diag.Diagnostics) {
	set := func(name string, value any) { diags.Append(state.SetAttribute(ctx, path.Root(name), value)...) }
	var refs []shared.NodeRef
	for _, member := range spec.Members {
		refs = append(refs, shared.NodeRef{
			Connection: login, ID: types.StringValue(member.Host), Host: types.StringValue(member.Host), Name: types.StringValue(member.Name),
			FabricAddress: types.StringValue(member.Address), GPUCount: types.Int64Value(int64(member.GPUs)),
		})
	}
	set("id", spec.Name+"@"+spec.Members[0].Host)
	set("name", spec.Name)
	set("image", spec.Image)
	set("port", int64(spec.Port))
	set("weights_dir", spec.WeightsDir)
	set("authentication", spec.Authentication)
	set("head", refs[0])
	if len(refs) > 1 {
		set("workers", refs[1:])
	}
	if len(spec.Env) > 0 {
		set("env", spec.Env)
	}
	if len(spec.Args) > 0 {
		set("args", spec.Args)
	}
}
