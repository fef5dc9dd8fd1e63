package sparknode

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// model is a spark_node in configuration, plan and state.
type model struct {
	shared.Connection
	Host          types.String   `tfsdk:"host"`
	FabricAddress types.String   `tfsdk:"fabric_address"`
	GPUCount      types.Int64    `tfsdk:"gpu_count"`
	IgnoreDrift   types.Set      `tfsdk:"ignore_drift"`
	KeepAgent     types.Bool     `tfsdk:"keep_agent"`
	ID            types.String   `tfsdk:"id"`
	Name          types.String   `tfsdk:"name"`
	Machine       types.String   `tfsdk:"machine"`
	MemoryGiB     types.Int64    `tfsdk:"memory_gib"`
	Observed      types.Object   `tfsdk:"observed"`
	Drift         types.List     `tfsdk:"drift"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
}

// observed is what Read saw.
type observed struct {
	ManagementAddress types.String `tfsdk:"management_address"`
	FabricAddress     types.String `tfsdk:"fabric_address"`
	GPUCount          types.Int64  `tfsdk:"gpu_count"`
	Driver            types.String `tfsdk:"driver"`
	Machine           types.String `tfsdk:"machine"`
	Reachable         types.Bool   `tfsdk:"reachable"`
}

// observedTypes is the type of the nested object.
var observedTypes = map[string]attr.Type{
	"management_address": types.StringType,
	"fabric_address":     types.StringType,
	"gpu_count":          types.Int64Type,
	"driver":             types.StringType,
	"machine":            types.StringType,
	"reachable":          types.BoolType,
}

func (m model) connection() fleet.Connection { return m.To(m.Host.ValueString()) }

// unreachableYet says that the node cannot be judged: how it is reached, or what is ignored,
// comes from another resource.
func (m model) unreachableYet(ctx context.Context) bool {
	_, known := shared.IgnoredOf(ctx, m.IgnoreDrift)
	return m.Host.IsUnknown() || m.Unknown() || !known
}

// declared is what the configuration pins.
func (m model) declared() node.Declared {
	var pinned node.Declared
	if !m.FabricAddress.IsNull() && !m.FabricAddress.IsUnknown() {
		pinned.FabricAddress = m.FabricAddress.ValueStringPointer()
	}
	if !m.GPUCount.IsNull() && !m.GPUCount.IsUnknown() {
		count := int(m.GPUCount.ValueInt64())
		pinned.GPUs = &count
	}
	return pinned
}

func (m model) accepted() node.Accepted {
	return node.Accepted{FabricAddress: m.FabricAddress.ValueString(), GPUs: int(m.GPUCount.ValueInt64()), Machine: m.Machine.ValueString()}
}

func (m *model) accept(values node.Accepted) {
	m.FabricAddress = shared.OrNull(values.FabricAddress)
	m.GPUCount = types.Int64Value(int64(values.GPUs))
	m.Machine = shared.OrNull(values.Machine)
}

// ignored are the kinds of drift that the user lives with.
func (m model) ignored(ctx context.Context) node.Ignored {
	kinds, _ := shared.IgnoredOf(ctx, m.IgnoreDrift) // plans wait until they are known
	return kinds
}

// see writes what was observed.
func (m *model) see(seen node.Observed) {
	m.setObserved(observed{
		ManagementAddress: shared.OrNull(seen.ManagementAddress),
		FabricAddress:     shared.OrNull(seen.FabricAddress),
		GPUCount:          types.Int64Value(int64(seen.GPUs)),
		Driver:            shared.OrNull(seen.Driver),
		Machine:           shared.OrNull(seen.Machine.Name),
		Reachable:         types.BoolValue(true),
	})
}

func (m *model) setObserved(values observed) {
	m.Observed = types.ObjectValueMust(observedTypes, map[string]attr.Value{
		"management_address": values.ManagementAddress,
		"fabric_address":     values.FabricAddress,
		"gpu_count":          values.GPUCount,
		"driver":             values.Driver,
		"machine":            values.Machine,
		"reachable":          values.Reachable,
	})
}

func (m model) observed(ctx context.Context, diags *diag.Diagnostics) observed {
	var values observed
	if !m.Observed.IsNull() && !m.Observed.IsUnknown() {
		diags.Append(m.Observed.As(ctx, &values, basetypes.ObjectAsOptions{})...)
	}
	return values
}

// observation turns the stored observation back into the domain's words.
func (m model) observation(values observed) node.Observed {
	return node.Observed{
		Name:              m.Name.ValueString(),
		ManagementAddress: values.ManagementAddress.ValueString(),
		FabricAddress:     values.FabricAddress.ValueString(),
		GPUs:              int(values.GPUCount.ValueInt64()),
		Driver:            values.Driver.ValueString(),
		Machine:           node.Machine{Name: values.Machine.ValueString()},
	}
}
