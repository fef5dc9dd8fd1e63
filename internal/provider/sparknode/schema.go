package sparknode

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// Schema implements resource.Resource.
func (r *nodeResource) Schema(ctx context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "A DGX Spark: a machine with Docker, the NVIDIA container toolkit and sshd. " +
			"Nothing is installed there but a helper of a few MB in the login user's cache folder; destroying the resource removes it.\n\n" +
			"`fabric_address` and `gpu_count` are the *accepted* values that clusters stand on, `observed` is what the last look found. " +
			"A new address is followed in the plan, unless it is pinned here; a lost GPU is never accepted silently.",
		Attributes: shared.With(map[string]schema.Attribute{
			"host": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name or address of the node for SSH, without user and port. Another host replaces the resource.",
				Validators:          []validator.String{shared.HostName()},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"fabric_address": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Identity address of the node: the IPv4 address by which Ray and vLLM know it. " +
					"Default: the address of the first interface with an RDMA device (ConnectX-7), else of the first with 100 Gb/s, else of the default route; a change there is followed, and the plan shows it. Pinned here, a change is reported and never followed.",
				Validators: []validator.String{shared.IPv4()},
			},
			"gpu_count": schema.Int64Attribute{
				Optional: true, Computed: true,
				MarkdownDescription: "GPUs of the node. Default: those present; a gain is followed, a loss is drift until the GPU is back or the loss is accepted by writing the number here.",
				Validators:          []validator.Int64{int64validator.Between(0, 16)},
			},
			"ignore_drift": shared.IgnoreDrift("observed", node.Kinds()),
			"keep_agent": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Leave our helper in its folder on the node when the resource is destroyed. Default: it is removed.",
			},
			"machine": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "MAC address of a network card of the machine that was accepted. When another machine answers under `host` (DNS, DHCP, an exchange), that is drift, and apply stops there. `terraform apply -replace` accepts the new one.",
			},
			"id":   schema.StringAttribute{Computed: true, MarkdownDescription: "The `host`."},
			"name": schema.StringAttribute{Computed: true, MarkdownDescription: "The node's own host name.", PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
			"memory_gib": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "Memory in GiB that the system sees; CPU and GPU of a GB10 share it.",
			},
			"observed": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "What the last look at the node found.",
				Attributes: map[string]schema.Attribute{
					"management_address": schema.StringAttribute{Computed: true, MarkdownDescription: "IPv4 address of the management network."},
					"fabric_address":     schema.StringAttribute{Computed: true, MarkdownDescription: "Identity address that the node has now; null if its fabric interface has none."},
					"gpu_count":          schema.Int64Attribute{Computed: true, MarkdownDescription: "GPUs that `nvidia-smi` lists now."},
					"driver":             schema.StringAttribute{Computed: true, MarkdownDescription: "Version of the NVIDIA driver."},
					"machine":            schema.StringAttribute{Computed: true, MarkdownDescription: "MAC address of the machine that answered."},
					"reachable":          schema.BoolAttribute{Computed: true, MarkdownDescription: "False when the node did not answer and `unreachable = \"keep\"` went on with the last known values."},
				},
			},
			"drift": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What differs from the accepted values, a sentence each; empty when nothing does. CI can read this one path.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true,
				CreateDescription: "Default: 2m.", ReadDescription: "Default: 2m, for a plan of a new node too.", UpdateDescription: "Default: 2m.", DeleteDescription: "Default: 2m."}),
		}, shared.ConnectionAttributes()),
	}
}
