// Package sparknode is the resource spark_node and the data source of the same name.
package sparknode

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// TypeName is the resource's type.
const TypeName = "spark_node"

// standardTimeout bounds each act: a dial has 10 s, an upload of the agent takes seconds on a slow line.
const standardTimeout = 2 * time.Minute

var (
	_ resource.ResourceWithConfigure   = (*nodeResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*nodeResource)(nil)
	_ resource.ResourceWithImportState = (*nodeResource)(nil)
	_ resource.ResourceWithIdentity    = (*nodeResource)(nil)
)

type nodeResource struct{ shared.Frame }

// New makes the resource.
func New() resource.Resource { return &nodeResource{shared.Frame{Type: TypeName}} }

// look takes the snapshot of the node: its facts, and proof that its engine answers. What the
// connection has to warn of is told once.
func (r *nodeResource) look(ctx context.Context, m model, diags *diag.Diagnostics) (node.Observed, agent.Facts, error) {
	machine := r.Data.Pool.Machine(m.connection())
	var facts agent.Facts
	var engineErr error
	// Both at once: the engine's round trips hide behind the agent's start.
	var group sync.WaitGroup
	group.Go(func() { _, engineErr = machine.Containers(ctx) })
	facts, err := machine.Facts(ctx)
	group.Wait()
	warn(r.Data, machine, diags)
	if err = cmp.Or(err, engineErr); err != nil {
		return node.Observed{}, facts, err
	}
	return node.Observe(facts, m.Host.ValueString(), m.accepted()), facts, nil
}

// warn tells what was found wrong on the way to a node and stopped nothing, once in a plan.
func warn(data *shared.Data, machine fleet.Machine, diags *diag.Diagnostics) {
	for _, text := range machine.Warnings() {
		if data.Nodes.First(machine.Host(), text) {
			diags.AddAttributeWarning(path.Root("host"), "Connection to "+machine.Host(), text)
		}
	}
}

// Create implements resource.Resource. Nothing is made on the node: it is checked and accepted.
func (r *nodeResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var plan, config model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Create, standardTimeout, &response.Diagnostics)
	defer cancel()
	seen, facts, err := r.look(ctx, plan, &response.Diagnostics)
	if err == nil {
		err = r.Data.Pool.Machine(plan.connection()).Writable(ctx) // A key that may only look accepts nothing.
	}
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "create spark_node "+plan.Host.ValueString(), err)
		return
	}
	planned := node.Follow(plan.declared(), nil, seen, nil)
	planned.Machine = cmp.Or(plan.Machine.ValueString(), planned.Machine)
	stop(&response.Diagnostics, node.Unlisted(config.declared(), seen, plan.Host.ValueString()))
	stop(&response.Diagnostics, node.Problems(planned, seen, plan.Host.ValueString(), node.Addresses(facts), nil))
	if response.Diagnostics.HasError() {
		return
	}
	plan.fill(seen, planned)
	response.Diagnostics.Append(response.State.Set(ctx, plan)...)
	response.Diagnostics.Append(response.Identity.Set(ctx, plan.identity())...)
}

// Read implements resource.Resource. It writes what is observed and never what is accepted, but for a
// node that was just imported.
func (r *nodeResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	if r.Waits(&response.Diagnostics) {
		return
	}
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, state.Timeouts.Read, standardTimeout, &response.Diagnostics)
	defer cancel()
	imported := state.Name.IsNull()
	seen, _, err := r.look(ctx, state, &response.Diagnostics)
	switch {
	case err != nil && !imported && state.Keeps(r.Data) && shared.Unreachable(err):
		r.keep(ctx, &state, err, &response.Diagnostics)
	case err != nil:
		shared.UnableKept(&response.Diagnostics, path.Root("host"), "read spark_node "+state.Host.ValueString(), err)
		return
	case imported:
		if unlisted := node.Unlisted(node.Declared{}, seen, state.Host.ValueString()); len(unlisted) > 0 {
			stop(&response.Diagnostics, unlisted)
			return
		}
		state.fill(seen, node.Follow(node.Declared{}, nil, seen, nil))
	default:
		state.see(seen)
		if state.Machine.IsNull() {
			state.Machine = shared.OrNull(seen.Machine.Name)
		}
		state.Drift = shared.Strings(node.Lines(state.accepted(), seen, state.ignored(ctx)))
	}
	response.Diagnostics.Append(response.State.Set(ctx, state)...)
	response.Diagnostics.Append(response.Identity.Set(ctx, state.identity())...)
}

// keep goes on with the last known values of a node that does not answer.
func (r *nodeResource) keep(ctx context.Context, state *model, err error, diags *diag.Diagnostics) {
	values := state.observed(ctx, diags)
	values.Reachable = types.BoolValue(false)
	state.setObserved(values)
	state.Drift = shared.Strings(nil)
	if !state.ignored(ctx).Has(node.KindReachable) {
		state.Drift = shared.Strings([]string{state.Name.ValueString() + ": does not answer; values below are the last known ones"})
	}
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
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Update, standardTimeout, &response.Diagnostics)
	defer cancel()
	seen, facts, err := r.look(ctx, plan, &response.Diagnostics)
	if err == nil {
		err = r.Data.Pool.Machine(plan.connection()).Writable(ctx)
	}
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "update spark_node "+plan.Host.ValueString(), err)
		return
	}
	planned, ignored := plan.accepted(), plan.ignored(ctx)
	before := state.observation(state.observed(ctx, &response.Diagnostics))
	lastSeen := node.Accepted{FabricAddress: before.FabricAddress, GPUs: before.GPUs, Machine: before.Machine.Name}
	if moved := node.Moved(planned, seen, ignored); moved != "" && node.Moved(lastSeen, seen, ignored) != "" {
		response.Diagnostics.AddAttributeError(path.Root("host"),
			"Host "+seen.Name+" ("+plan.Host.ValueString()+") changed again after this plan was made",
			moved+" Plan again. Nothing that depends on this node was changed.")
		return
	}
	stop(&response.Diagnostics, node.Problems(planned, seen, plan.Host.ValueString(), node.Addresses(facts), ignored))
	if response.Diagnostics.HasError() {
		return
	}
	response.Diagnostics.Append(response.State.Set(ctx, plan)...)
	response.Diagnostics.Append(response.Identity.Set(ctx, plan.identity())...)
}

// Delete implements resource.Resource: it takes our helper off the node.
func (r *nodeResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() || state.KeepAgent.ValueBool() {
		return
	}
	ctx, cancel := shared.Limit(ctx, state.Timeouts.Delete, standardTimeout, &response.Diagnostics)
	defer cancel()
	machine := r.Data.Pool.Machine(state.connection())
	helper, err := machine.Agent(ctx)
	if err == nil {
		err = machine.Writable(ctx)
	}
	if err == nil {
		err = helper.Uninstall(ctx)
	}
	switch {
	case err == nil:
	case state.Keeps(r.Data) && shared.Unreachable(err):
		shared.LeftBehind(&response.Diagnostics, state.Host.ValueString(), "our helper in "+cmp.Or(state.AgentDir.ValueString(), "~/.cache/spark-stack"), err)
	default:
		shared.UnableDelete(&response.Diagnostics, path.Root("host"), "delete spark_node "+state.Host.ValueString(), err)
	}
}

// stop turns what apply cannot change into errors.
func stop(diags *diag.Diagnostics, problems []node.Problem) {
	shared.Report(diags, problems, " Nothing that depends on this node was changed.")
}
