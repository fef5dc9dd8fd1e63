// Package sparknode is the resource spark_node.
package sparknode

import (
	"cmp"
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// TypeName is the resource's type.
const TypeName = "spark_node"

var (
	_ resource.ResourceWithConfigure  = (*nodeResource)(nil)
	_ resource.ResourceWithModifyPlan = (*nodeResource)(nil)
)

type nodeResource struct{ shared.Frame }

// New makes the resource.
func New() resource.Resource { return &nodeResource{shared.Frame{Type: TypeName}} }

// look takes the snapshot of the node: its facts, and proof that its engine answers.
func (r *nodeResource) look(ctx context.Context, m model, accepted string) (node.Observed, agent.Facts, error) {
	machine := r.Data.Pool.Machine(m.connection())
	var facts agent.Facts
	var engineErr error
	// Both at once: the engine's round trips hide behind the agent's start.
	var group sync.WaitGroup
	group.Go(func() { _, engineErr = machine.Containers(ctx) })
	facts, err := machine.Facts(ctx)
	group.Wait()
	if err = cmp.Or(err, engineErr); err != nil {
		return node.Observed{}, facts, err
	}
	return node.Observe(facts, m.Host.ValueString(), accepted), facts, nil
}

// Create implements resource.Resource. Nothing is made on the node: it is checked and accepted.
func (r *nodeResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var plan, config model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if response.Diagnostics.HasError() {
		return
	}
	seen, facts, err := r.look(ctx, plan, plan.FabricAddress.ValueString())
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "create spark_node "+plan.Host.ValueString(), err)
		return
	}
	planned := node.Follow(plan.declared(), nil, seen)
	if unlisted := node.Unlisted(config.declared(), seen, plan.Host.ValueString()); unlisted != nil {
		stop(&response.Diagnostics, []node.Problem{*unlisted})
	}
	stop(&response.Diagnostics, node.Problems(planned, seen, plan.Host.ValueString(), node.Addresses(facts)))
	if response.Diagnostics.HasError() {
		return
	}
	plan.fill(seen, planned)
	response.Diagnostics.Append(response.State.Set(ctx, plan)...)
}

// Read implements resource.Resource. It writes what is observed and never what is accepted.
func (r *nodeResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	if r.Waits(&response.Diagnostics) {
		return
	}
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	seen, _, err := r.look(ctx, state, state.FabricAddress.ValueString())
	switch {
	case err != nil && state.Keeps(r.Data) && shared.Unreachable(err):
		r.keep(ctx, &state, err, &response.Diagnostics)
	case err != nil:
		shared.UnableKept(&response.Diagnostics, path.Root("host"), "read spark_node "+state.Host.ValueString(), err)
		return
	default:
		state.see(seen)
		state.Drift = shared.Strings(node.Lines(state.accepted(), seen))
	}
	response.Diagnostics.Append(response.State.Set(ctx, state)...)
}

// keep goes on with the last known values of a node that does not answer.
func (r *nodeResource) keep(ctx context.Context, state *model, err error, diags *diag.Diagnostics) {
	values := state.observed(ctx, diags)
	values.Reachable = types.BoolValue(false)
	state.setObserved(values)
	state.Drift = shared.Strings([]string{state.Name.ValueString() + ": does not answer; values below are the last known ones"})
	diags.AddAttributeWarning(path.Root("host"), "Host "+state.Host.ValueString()+" does not answer",
		err.Error()+"; going on with the last known values")
}

// Update implements resource.Resource: it accepts what the plan follows, after a look that the node
// is still what the plan was made for.
func (r *nodeResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var plan, state model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	seen, facts, err := r.look(ctx, plan, plan.FabricAddress.ValueString())
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "update spark_node "+plan.Host.ValueString(), err)
		return
	}
	planned, before := plan.accepted(), state.observation(state.observed(ctx, &response.Diagnostics))
	if moved := node.Moved(planned, seen); moved != "" && node.Moved(node.Accepted{FabricAddress: before.FabricAddress, GPUs: before.GPUs}, seen) != "" {
		response.Diagnostics.AddAttributeError(path.Root("host"),
			"Host "+seen.Name+" ("+plan.Host.ValueString()+") changed again after this plan was made",
			moved+" Plan again. Nothing that depends on this node was changed.")
		return
	}
	stop(&response.Diagnostics, node.Problems(planned, seen, plan.Host.ValueString(), node.Addresses(facts)))
	if response.Diagnostics.HasError() {
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, plan)...)
}

// Delete implements resource.Resource: it takes our helper off the node.
func (r *nodeResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	machine := r.Data.Pool.Machine(state.connection())
	helper, err := machine.Agent(ctx)
	if err == nil {
		err = helper.Uninstall(ctx)
	}
	switch {
	case err == nil:
	case state.Keeps(r.Data) && shared.Unreachable(err):
		shared.LeftBehind(&response.Diagnostics, state.Host.ValueString(), "our helper in ~/.cache/spark-stack", err)
	default:
		shared.UnableDelete(&response.Diagnostics, path.Root("host"), "delete spark_node "+state.Host.ValueString(), err)
	}
}

// stop turns what apply cannot change into errors.
func stop(diags *diag.Diagnostics, problems []node.Problem) {
	for _, problem := range problems {
		diags.AddAttributeError(path.Root(problem.Attribute), problem.Summary,
			problem.Detail+" Nothing that depends on this node was changed.")
	}
}
