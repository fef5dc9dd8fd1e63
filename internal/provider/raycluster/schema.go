package raycluster

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// Schema implements resource.Resource.
func (r *clusterResource) Schema(ctx context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "A Ray cluster: one container per node, each known to Ray by its node's identity address. " +
			"After the start the GCS itself is asked: exactly these nodes, these addresses, these GPUs, none taken. The same questions are asked again at every refresh.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("spark"),
				MarkdownDescription: "Name of the cluster; its containers are `ray-<name>`. Default: `spark`. Another name replaces the cluster.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"image": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Image with Ray and vLLM, present on every node with the same image id.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"head": schema.SingleNestedAttribute{
				Required: true, Attributes: shared.NodeRefAttributes(),
				MarkdownDescription: "The node that runs the GCS and the server: `head = spark_node.a`. Another host replaces the cluster.",
			},
			"workers": schema.ListNestedAttribute{
				Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: shared.NodeRefAttributes()},
				MarkdownDescription: "The other nodes: `workers = [spark_node.b]`, or `values(spark_node.w)` with `for_each`. Their order means nothing.",
			},
			"env": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.Map{mapvalidator.NoNullValues(), shared.NoSecrets()},
				MarkdownDescription: "Environment of every Ray container, and so of every vLLM worker. What names a node's identity (`VLLM_HOST_IP`, `NCCL_SOCKET_IFNAME`, …) is set by the provider per node and refused here, as are secrets.",
			},
			"args": schema.ListAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.NoNullValues()},
				MarkdownDescription: "Further arguments of `ray start` on every node.",
			},
			"port": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(ray.DefaultPort),
				MarkdownDescription: "Port of the GCS on the head. Default: 6379.",
				Validators:          []validator.Int64{int64validator.Between(1024, 65535)},
			},
			"weights_dir": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("~/.cache/huggingface"),
				MarkdownDescription: "Folder on every node below which models lie, mounted at the same path in the containers. `~/` is the login user's home. Default: `~/.cache/huggingface`, the hub's cache.",
				Validators:          []validator.String{stringvalidator.RegexMatches(absoluteOrHome, "an absolute path, or one that starts with ~/")},
			},
			"authentication": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(ray.AuthToken),
				MarkdownDescription: "`token` (default) or `none`. With `token` Ray refuses everybody who does not know the cluster's token: it is made at the start, anew with each new head, and is kept in a file on the nodes that only the login user can read, never in state. " +
					"That a call without it is refused is proved at the start and at each refresh. Ray before 2.52 has no tokens: that is a warning.",
				Validators: []validator.String{stringvalidator.OneOf(ray.AuthToken, ray.AuthNone)},
			},
			"ignore_drift":  shared.IgnoreDrift("nodes", ray.Kinds()),
			"authenticated": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether Ray was seen to refuse a call without the token at the last start."},
			"id":            schema.StringAttribute{Computed: true, MarkdownDescription: "`name@head-host`."},
			"address":       schema.StringAttribute{Computed: true, MarkdownDescription: "Address of the GCS: the head's identity address and the port."},
			"gpu_total":     schema.Int64Attribute{Computed: true, MarkdownDescription: "GPUs that Ray offers in all."},
			"session":       schema.StringAttribute{Computed: true, MarkdownDescription: "Changes whenever a container of the cluster is started or replaced; a deployment restarts with it."},
			"drift": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What differs from the declaration, a sentence each; empty when nothing does.",
			},
			"nodes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Each member by host: what is, and in a plan what shall be.",
				NestedObject: schema.NestedAttributeObject{Attributes: shared.With(map[string]schema.Attribute{
					"name":         schema.StringAttribute{Computed: true, MarkdownDescription: "Host name."},
					"role":         schema.StringAttribute{Computed: true, MarkdownDescription: "`head` or `worker`."},
					"address":      schema.StringAttribute{Computed: true, MarkdownDescription: "Address by which Ray knows the node."},
					"gpu_count":    schema.Int64Attribute{Computed: true, MarkdownDescription: "GPUs that Ray offers there."},
					"container":    schema.StringAttribute{Computed: true, MarkdownDescription: "Docker's word for the container (`running`, `exited`, …), or `missing`."},
					"container_id": schema.StringAttribute{Computed: true, MarkdownDescription: "Id of the container."},
					"image":        schema.StringAttribute{Computed: true, MarkdownDescription: "Image that the container was made from."},
					"command":      schema.StringAttribute{Computed: true, MarkdownDescription: "The `ray start` line."},
					"env":          schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Environment as configured, with what differs: set by hand, or set by the provider and no longer right. Secret-looking values are masked."},
					"differences":  schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Further differences of the container (mounts, namespaces, shared memory, devices), in words."},
				}, shared.SeenConnectionAttributes())},
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Update: true, Delete: true,
				CreateDescription: "Default: 10m.", UpdateDescription: "Default: 10m.", DeleteDescription: "Default: 5m."}),
		},
	}
}
