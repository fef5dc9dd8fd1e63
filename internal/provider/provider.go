// Package provider is the Terraform provider "spark".
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/raycluster"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/sparknode"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/vllmdeployment"
)

type sparkProvider struct {
	version string
	pool    *fleet.Pool
}

// New makes the provider; version is the release, or "dev".
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &sparkProvider{version: version} }
}

// Metadata implements provider.Provider.
func (p *sparkProvider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName, response.Version = "spark", p.version
}

// Schema implements provider.Provider.
func (p *sparkProvider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Runs a large model over NVIDIA DGX Spark machines: Ray and vLLM in containers, weights on every node, over SSH and Docker.",
		Attributes:          shared.ProviderAttributes(),
	}
}

// Configure implements provider.Provider. It dials nothing: values may come from resources that do
// not exist yet.
func (p *sparkProvider) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	defaults, waits := settingsOf(ctx, request.Config, &response.Diagnostics)
	if response.Diagnostics.HasError() {
		return
	}
	if waits != "" {
		response.ResourceData, response.DataSourceData = shared.Waiting(waits), shared.Waiting(waits)
		return
	}
	if p.pool != nil {
		p.pool.Close() // a new configuration starts with fresh connections and nothing seen
	}
	p.pool = fleet.NewPool(defaults.Defaults)
	data := &shared.Data{Pool: p.pool, KeepUnreachable: defaults.KeepUnreachable}
	response.ResourceData, response.DataSourceData = data, data
}

// Resources implements provider.Provider.
func (p *sparkProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{sparknode.New, raycluster.New, vllmdeployment.New}
}

// DataSources implements provider.Provider.
func (p *sparkProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{sparknode.NewSource}
}
