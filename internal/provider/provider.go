// Package provider is the Terraform provider "spark".
package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/raycluster"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/sparknode"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/vllmdeployment"
)

// Environment variables that stand in for the attributes, so that most configurations need no
// provider block.
const (
	envUser           = "SPARK_SSH_USER"
	envPort           = "SPARK_SSH_PORT"
	envPrivateKeyFile = "SPARK_SSH_PRIVATE_KEY_FILE"
	envKnownHostsFile = "SPARK_SSH_KNOWN_HOSTS_FILE"
	envUnreachable    = "SPARK_UNREACHABLE"
)

type sparkProvider struct {
	version string
	pool    *fleet.Pool
}

// New makes the provider; version is the release, or "dev".
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &sparkProvider{version: version} }
}

type providerModel struct {
	User           types.String `tfsdk:"user"`
	Port           types.Int64  `tfsdk:"port"`
	PrivateKeyFile types.String `tfsdk:"private_key_file"`
	KnownHostsFile types.String `tfsdk:"known_hosts_file"`
	Unreachable    types.String `tfsdk:"unreachable"`
}

// Metadata implements provider.Provider.
func (p *sparkProvider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName, response.Version = "spark", p.version
}

// Schema implements provider.Provider.
func (p *sparkProvider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Runs a large model over NVIDIA DGX Spark machines: Ray and vLLM in containers, weights on every node, over SSH and Docker.",
		Attributes: map[string]schema.Attribute{
			"user": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "SSH user on the nodes. Environment: `" + envUser + "`. Default: the local user.",
			},
			"port": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, 65535)},
				MarkdownDescription: "SSH port of the nodes. Environment: `" + envPort + "`. Default: 22.",
			},
			"private_key_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Private key file. Environment: `" + envPrivateKeyFile + "`. Default: the SSH agent, then `~/.ssh/id_ed25519`, `id_ecdsa`, `id_rsa`.",
			},
			"known_hosts_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "File of trusted host keys; it is read and never written. Environment: `" + envKnownHostsFile + "`. Default: `~/.ssh/known_hosts` and `/etc/ssh/ssh_known_hosts`.",
			},
			"unreachable": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("error", "keep")},
				MarkdownDescription: "What a refresh does with a node that does not answer: `error` (default) stops the plan with exit code 1, `keep` goes on with the last known values and shows the node as drifted. Environment: `" + envUnreachable + "`.",
			},
		},
	}
}

// Configure implements provider.Provider. It dials nothing: values may come from resources that do
// not exist yet.
func (p *sparkProvider) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var config providerModel
	response.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if response.Diagnostics.HasError() {
		return
	}
	if name := config.firstUnknown(); name != "" {
		response.ResourceData = shared.Waiting(name)
		return
	}
	defaults := fleet.Defaults{
		User:           cmp.Or(config.User.ValueString(), os.Getenv(envUser)),
		Port:           int(config.Port.ValueInt64()),
		PrivateKeyFile: cmp.Or(config.PrivateKeyFile.ValueString(), os.Getenv(envPrivateKeyFile)),
	}
	if file := cmp.Or(config.KnownHostsFile.ValueString(), os.Getenv(envKnownHostsFile)); file != "" {
		defaults.KnownHostsFiles = []string{file}
	}
	if text := os.Getenv(envPort); text != "" && defaults.Port == 0 {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			response.Diagnostics.AddAttributeError(path.Root("port"), "Unable to read "+envPort, fmt.Sprintf("%q is no port number between 1 and 65535.", text))
			return
		}
		defaults.Port = port
	}
	unreachable := cmp.Or(config.Unreachable.ValueString(), os.Getenv(envUnreachable), "error")
	if unreachable != "error" && unreachable != "keep" {
		response.Diagnostics.AddAttributeError(path.Root("unreachable"), "Unable to read "+envUnreachable, fmt.Sprintf(`%q is neither "error" nor "keep".`, unreachable))
		return
	}
	if p.pool != nil {
		p.pool.Close() // a new configuration starts with fresh connections and nothing seen
	}
	p.pool = fleet.NewPool(defaults)
	response.ResourceData = &shared.Data{Pool: p.pool, KeepUnreachable: unreachable == "keep"}
}

// Resources implements provider.Provider.
func (p *sparkProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{sparknode.New, raycluster.New, vllmdeployment.New}
}

// DataSources implements provider.Provider.
func (p *sparkProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
