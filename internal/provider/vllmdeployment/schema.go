package vllmdeployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// Schema implements resource.Resource.
func (r *deploymentResource) Schema(ctx context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	notEmpty := []validator.String{stringvalidator.LengthAtLeast(1)}
	response.Schema = schema.Schema{
		MarkdownDescription: "One model, served by vLLM over all nodes of a Ray cluster. The weights are brought to every node over the fabric and proved, " +
			"the cluster is asked who its members are, and only then the server starts. It is ready when it has answered a completion.",
		Attributes: shared.With(map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Name of the deployment; its container is `vllm-<name>`. Default: made from the first model's name. Another name replaces the deployment.",
			},
			"cluster": schema.SingleNestedAttribute{
				Required: true, Attributes: clusterAttributes(),
				MarkdownDescription: "The cluster to serve on: `cluster = ray_cluster.pair`.",
			},
			"model": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "What to serve: a folder on the nodes (`path`), or a commit of a Hugging Face repository (`repo`, `revision`) in the hub's cache. One node must have it; the others get it from there.",
				Attributes: map[string]schema.Attribute{
					"path":     schema.StringAttribute{Optional: true, Validators: notEmpty, MarkdownDescription: "Folder of the model, the same on every node, below the cluster's `weights_dir`."},
					"repo":     schema.StringAttribute{Optional: true, Validators: notEmpty, MarkdownDescription: "Repository, such as `Qwen/Qwen3.5-122B-A10B-FP8`."},
					"revision": schema.StringAttribute{Optional: true, Validators: notEmpty, MarkdownDescription: "Commit of the repository, 40 hexadecimal digits; a branch would move. With `path` any word of yours: change it when the folder was renewed on a node, and that content is accepted and brought to the others."},
				},
			},
			"image": schema.StringAttribute{Optional: true, Validators: notEmpty, MarkdownDescription: "Image of the server. Default: the cluster's; both must have the same Ray."},
			"tensor_parallel_size": schema.Int64Attribute{
				Optional: true, Computed: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: "GPUs that share each layer. Default: all of the cluster's.",
			},
			"port": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(vllm.DefaultPort),
				Validators:          []validator.Int64{int64validator.Between(1024, 65535)},
				MarkdownDescription: "Port of the OpenAI-compatible API on the head. Default: 8000.",
			},
			"verify": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(weights.Quick), string(weights.Full))},
				MarkdownDescription: "How much of the weights each look at the nodes reads. `quick` (default): names, sizes, times and headers, and whole only what was written to since the last look. " +
					"`full`: every byte on every node, which also finds bits that rotted on a disk, and takes as long as the disks need.",
			},
			"served_model_name": schema.StringAttribute{Optional: true, Computed: true, Validators: notEmpty, MarkdownDescription: "Name of the model in the API. Default: the last part of its repository or path."},
			"args":              schema.ListAttribute{Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.NoNullValues()}, MarkdownDescription: "Further arguments of `vllm serve`. What the other attributes say is refused here."},
			"env": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.Map{mapvalidator.NoNullValues(), shared.NoSecrets()},
				MarkdownDescription: "Environment of the server. What names a node's identity (`VLLM_HOST_IP`, …) is set by the provider and refused here, as are secrets.",
			},
			"api_key": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				Validators:          []validator.String{aKey, stringvalidator.AlsoRequires(path.MatchRoot("api_key_version"))},
				MarkdownDescription: "Key that every request under `/v1` must bring (`Authorization: Bearer …`). Write-only, from Terraform 1.11 on: no plan, state, log, argument or environment has it. It lies in a file of the head's login user (0600).",
			},
			"api_key_version": schema.Int64Attribute{
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(1), int64validator.AlsoRequires(path.MatchRoot("api_key"))},
				MarkdownDescription: "Version of `api_key`, which Terraform cannot compare: another number brings the new key, and restarts the server.",
			},
			"id":       schema.StringAttribute{Computed: true, MarkdownDescription: "`name@head-host`."},
			"endpoint": schema.StringAttribute{Computed: true, MarkdownDescription: "Base URL of the API: `http://<head>:<port>/v1`."},
			"drift": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What differs from the declaration, a sentence each; empty when nothing does.",
			},
			"server": schema.SingleNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The server's container: what is, and in a plan what shall be.",
				Attributes: map[string]schema.Attribute{
					"host":            schema.StringAttribute{Computed: true, MarkdownDescription: "Node that it runs on."},
					"container":       schema.StringAttribute{Computed: true, MarkdownDescription: "Docker's word for the container (`running`, `exited`, …), or `missing`."},
					"container_id":    schema.StringAttribute{Computed: true, MarkdownDescription: "Id of the container."},
					"image":           schema.StringAttribute{Computed: true, MarkdownDescription: "Image that it was made from."},
					"command":         schema.StringAttribute{Computed: true, MarkdownDescription: "The `vllm serve` line."},
					"env":             schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Environment as configured, with what differs. Secret-looking values are masked."},
					"healthy":         schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it answers `/health`."},
					"differences":     schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Further differences of the container (mounts, namespaces, GPUs), in words."},
					"api_key_version": schema.Int64Attribute{Computed: true, MarkdownDescription: "Version of the API key that it was started with."},
					"cluster_session": schema.StringAttribute{Computed: true, MarkdownDescription: "Session of the cluster that it was started for."},
				},
			},
			"weights": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The model's files on each node, by host.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"state": schema.StringAttribute{Computed: true, MarkdownDescription: "`complete`, `incomplete` or `missing`."},
					"files": schema.Int64Attribute{Computed: true, MarkdownDescription: "Files that are whole."},
					"bytes": schema.Int64Attribute{Computed: true, MarkdownDescription: "Their size in bytes."},
				}},
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Update: true, Delete: true,
				CreateDescription: "Default: 90m, weights included.", UpdateDescription: "Default: 90m, weights included.", DeleteDescription: "Default: 5m."}),
		}, optionAttributes()),
	}
}

// clusterAttributes is what a deployment takes of a ray_cluster. All are Optional and none is
// Computed, for the reasons given at shared.NodeRefAttributes.
func clusterAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":          schema.StringAttribute{Optional: true, MarkdownDescription: "The cluster's id."},
		"name":        schema.StringAttribute{Optional: true, MarkdownDescription: "Its name."},
		"image":       schema.StringAttribute{Optional: true, MarkdownDescription: "Its image."},
		"address":     schema.StringAttribute{Optional: true, MarkdownDescription: "Address of its GCS."},
		"gpu_total":   schema.Int64Attribute{Optional: true, MarkdownDescription: "GPUs that it offers."},
		"session":     schema.StringAttribute{Optional: true, MarkdownDescription: "Its session: another one restarts the server."},
		"weights_dir": schema.StringAttribute{Optional: true, MarkdownDescription: "Folder of models on its nodes."},
		"nodes": schema.MapNestedAttribute{
			Optional: true, MarkdownDescription: "Its members by host.",
			NestedObject: schema.NestedAttributeObject{Attributes: shared.With(map[string]schema.Attribute{
				"name":      schema.StringAttribute{Optional: true, MarkdownDescription: "Host name."},
				"role":      schema.StringAttribute{Optional: true, MarkdownDescription: "`head` or `worker`."},
				"gpu_count": schema.Int64Attribute{Optional: true, MarkdownDescription: "GPUs that Ray offers there."},
				"address":   schema.StringAttribute{Optional: true, MarkdownDescription: "Identity address."},
			}, shared.NodeConnectionAttributes())},
		},
	}
}
