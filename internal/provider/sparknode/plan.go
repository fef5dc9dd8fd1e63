package sparknode

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// ModifyPlan implements resource.ResourceWithModifyPlan. It sets every computed attribute, so that
// a change of one argument shows as one change.
func (r *nodeResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || r.Data == nil {
		return
	}
	var plan, config model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if response.Diagnostics.HasError() || plan.unreachableYet() {
		return
	}
	creating := request.State.Raw.IsNull()
	var state model
	if !creating {
		response.Diagnostics.Append(request.State.Get(ctx, &state)...)
		creating = !state.Host.Equal(plan.Host)
	}
	if response.Diagnostics.HasError() {
		return
	}
	if creating {
		r.planCreate(ctx, &plan, config, response)
	} else {
		r.planUpdate(ctx, &plan, config, state, response)
	}
	if !response.Diagnostics.HasError() {
		response.Diagnostics.Append(response.Plan.Set(ctx, &plan)...)
	}
}

// planCreate looks at the node, so that the plan shows what will be accepted, and what cannot work
// fails before anything is changed anywhere.
func (r *nodeResource) planCreate(ctx context.Context, plan *model, config model, response *resource.ModifyPlanResponse) {
	host := plan.Host.ValueString()
	seen, facts, err := r.look(ctx, *plan, config.FabricAddress.ValueString())
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "plan spark_node "+host, err)
		return
	}
	if config.FabricAddress.IsUnknown() || config.GPUCount.IsUnknown() {
		return // known once the values they come from are
	}
	planned := node.Follow(config.declared(), nil, seen)
	if unlisted := node.Unlisted(config.declared(), seen, host); unlisted != nil {
		response.Diagnostics.AddAttributeError(path.Root(unlisted.Attribute), unlisted.Summary, unlisted.Detail)
	}
	for _, problem := range node.Problems(planned, seen, host, node.Addresses(facts)) {
		response.Diagnostics.AddAttributeError(path.Root(problem.Attribute), problem.Summary, problem.Detail+" Nothing was changed.")
	}
	plan.fill(seen, planned)
	// Nothing downstream needs these, and a driver that is updated between plan and apply is no reason to fail.
	plan.Observed, plan.MemoryGiB = types.ObjectUnknown(observedTypes), types.Int64Unknown()
}

// planUpdate follows what Read observed, and warns where apply will have to stop.
func (r *nodeResource) planUpdate(ctx context.Context, plan *model, config, state model, response *resource.ModifyPlanResponse) {
	values := state.observed(ctx, &response.Diagnostics)
	seen := state.observation(values)
	before, pinned := state.accepted(), config.declared()
	if pinned.FabricAddress != nil && *pinned.FabricAddress != before.FabricAddress && *pinned.FabricAddress != seen.FabricAddress {
		// Read judged the address that was accepted so far; this one was never looked for.
		now, _, err := r.look(ctx, *plan, *pinned.FabricAddress)
		if err != nil {
			shared.Unable(&response.Diagnostics, path.Root("host"), "plan spark_node "+state.Host.ValueString(), err)
			return
		}
		seen = now
	}
	planned := node.Follow(pinned, &before, seen)
	plan.ID, plan.Name, plan.MemoryGiB = state.ID, state.Name, state.MemoryGiB
	plan.Drift = shared.Strings(nil)
	if !config.FabricAddress.IsUnknown() {
		plan.FabricAddress = shared.OrNull(planned.FabricAddress)
	}
	if !config.GPUCount.IsUnknown() {
		plan.GPUCount = types.Int64Value(int64(planned.GPUs))
	}
	values.FabricAddress, values.Reachable = plan.FabricAddress, types.BoolValue(true)
	values.GPUCount = types.Int64Value(int64(max(planned.GPUs, seen.GPUs))) // a surplus is seen, and stays
	plan.setObserved(values)
	for _, problem := range node.Problems(planned, seen, state.Host.ValueString(), "see spark_node.observed") {
		response.Diagnostics.AddAttributeWarning(path.Root(problem.Attribute), problem.Summary,
			problem.Detail+" Applying this plan will stop at this node with an error and change nothing that depends on it.")
	}
}

// fill sets all that a first look tells.
func (m *model) fill(seen node.Observed, planned node.Accepted) {
	m.ID = m.Host
	m.Name = types.StringValue(seen.Name)
	m.MemoryGiB = types.Int64Value(seen.MemoryGiB)
	m.accept(planned)
	m.see(seen)
	m.Drift = shared.Strings(nil)
}
