package sparknode

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

var _ datasource.DataSourceWithConfigure = (*nodeSource)(nil)

type nodeSource struct{ shared.Source }

// NewSource makes the data source.
func NewSource() datasource.DataSource {
	return &nodeSource{shared.Source{Frame: shared.Frame{Type: TypeName}}}
}

// Schema implements datasource.DataSource.
func (s *nodeSource) Schema(ctx context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	text := func(what string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: what}
	}
	number := func(what string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: what}
	}
	truth := func(what string) schema.Attribute {
		return schema.BoolAttribute{Computed: true, MarkdownDescription: what}
	}
	texts := func(what string) schema.Attribute {
		return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: what}
	}
	list := func(what string, of map[string]schema.Attribute) schema.Attribute {
		return schema.ListNestedAttribute{Computed: true, MarkdownDescription: what, NestedObject: schema.NestedAttributeObject{Attributes: of}}
	}
	response.Schema = schema.Schema{
		MarkdownDescription: "What there is on a machine, without adopting it: nothing is expected of it, and no container engine is needed there. " +
			"Every plan looks again, so that a value which moves, such as free memory, changes whatever uses it.",
		Attributes: shared.With(map[string]schema.Attribute{
			"host": schema.StringAttribute{
				Required: true, Validators: []validator.String{shared.HostName()},
				MarkdownDescription: "Name or address of the machine for SSH, without user and port.",
			},
			"timeouts":           timeouts.Attributes(ctx),
			"id":                 text("The `host`."),
			"reachable":          truth("False when it did not answer and `unreachable` is `keep`; all that follows is null then."),
			"name":               text("Its own host name."),
			"machine":            text("MAC address that tells this machine from others; null where no network card has one of its maker. (`/etc/machine-id` does not: some DGX Sparks have equal ones.)"),
			"os":                 text("Name of the system, such as `Ubuntu 24.04.3 LTS`."),
			"kernel":             text("Release of the kernel."),
			"architecture":       text("`arm64` or `amd64`."),
			"login":              text("User that the provider is logged in as."),
			"groups":             texts("Groups of that user."),
			"management_address": text("IPv4 address of the management network."),
			"fabric_address":     text("Identity address that a `spark_node` would take; null if the fabric interface has none."),
			"driver":             text("Version of the NVIDIA driver."),
			"cuda":               text("Newest version of CUDA that the driver serves."),
			"gpu_error":          text("Why `nvidia-smi` gave no list of GPUs; null if it did."),
			"gpus": list("GPUs that `nvidia-smi` lists.", map[string]schema.Attribute{
				"index": number("Number."), "name": text("Product."), "uuid": text("Unique id."),
				"memory_mib": number("Memory of its own in MiB; null on a GB10, which shares the host's."),
			}),
			"memory": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "Memory in bytes, which is the GPU's too on a GB10.",
				Attributes: map[string]schema.Attribute{
					"total": number("All of it."), "available": number("What programs can get, page cache given back."), "free": number("What CUDA counts as free: page cache is not."),
				},
			},
			"interfaces": list("Network interfaces.", map[string]schema.Attribute{
				"name": text("Name."), "up": truth("Whether it is set up and has a carrier."), "mtu": number("MTU in bytes."), "speed_mbps": number("Speed of the link in Mb/s; null if it does not tell."),
				"mac": text("MAC address."), "port": text("Physical port, such as `p0`; the two halves of a ConnectX port share it."), "addresses": texts("Addresses with the length of their network, such as `192.168.200.12/24`."),
			}),
			"default_interface": text("Interface of the IPv4 default route."),
			"rdma_devices": list("RDMA devices.", map[string]schema.Attribute{
				"name": text("Name."), "interface": text("Network interface."), "active": truth("Whether its port is active."), "firmware": text("Version of its firmware."), "rate_gbps": number("Rate of the port in Gb/s."),
			}),
			"file_systems": list("Local file systems.", map[string]schema.Attribute{
				"path": text("Where it is mounted."), "type": text("Kind, such as `ext4`."), "free": number("Bytes that the user may still write; null if unknown."),
			}),
			"listening_ports": schema.ListAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: "TCP ports on which something listens."},
			"findings":        texts("What would get in the way of a deployment, a sentence each."),
			"unread":          texts("What could not be read there, in words."),
		}, shared.SourceConnectionAttributes()),
	}
}

// Read implements datasource.DataSource.
func (s *nodeSource) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	if s.Waits(&response.Diagnostics) {
		return
	}
	var m source
	response.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, m.Timeouts.Read, standardTimeout, &response.Diagnostics)
	defer cancel()
	machine := s.Data.Pool.Machine(m.To(m.Host.ValueString()))
	facts, err := machine.Facts(ctx)
	warn(s.Data, machine, &response.Diagnostics)
	m.ID = m.Host
	switch {
	case err == nil:
		m.fill(facts)
	case m.Keeps(s.Data) && shared.Unreachable(err):
		m.Reachable = types.BoolValue(false)
		response.Diagnostics.AddAttributeWarning(path.Root("host"), "Host "+m.Host.ValueString()+" does not answer", shared.Explain(err))
	default:
		shared.Unable(&response.Diagnostics, path.Root("host"), "look at "+m.Host.ValueString(), err)
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, m)...)
}
