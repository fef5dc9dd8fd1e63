package sparknode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
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
	if response.Diagnostics.HasError() || plan.unreachableYet(ctx) {
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
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Read, standardTimeout, &response.Diagnostics)
	defer cancel()
	if creating {
		r.planCreate(ctx, &plan, config, request, response)
	} else {
		r.claim(ctx, plan, node.Machine{Name: state.Machine.ValueString()}, request, response)
		r.planUpdate(ctx, &plan, config, state, response)
	}
	if !response.Diagnostics.HasError() {
		response.Diagnostics.Append(response.Plan.Set(ctx, &plan)...)
	}
}

// actable opens the way that acts take to the engine: the agent reads past an sshd that forbids it. A key
// that may only look plans all the same; it is refused when something is to be done.
func actable(ctx context.Context, machine fleet.Machine) error {
	docker, err := machine.Engine(ctx)
	var looking *fleet.ReadOnlyError
	if errors.As(err, &looking) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = docker.Version(ctx)
	return err
}

// planCreate looks at the node, so that the plan shows what will be accepted, and what cannot work
// fails before anything is changed anywhere.
func (r *nodeResource) planCreate(ctx context.Context, plan *model, config model, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	host := plan.Host.ValueString()
	seen, facts, err := r.look(ctx, config, &response.Diagnostics)
	if err == nil {
		err = actable(ctx, r.Data.Pool.Machine(plan.connection()))
	}
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Root("host"), "plan spark_node "+host, err)
		return
	}
	r.claim(ctx, *plan, seen.Machine, request, response)
	if config.FabricAddress.IsUnknown() || config.GPUCount.IsUnknown() {
		return // known once the values they come from are
	}
	planned := node.Follow(config.declared(), nil, seen, nil)
	shared.Report(&response.Diagnostics, node.Unlisted(config.declared(), seen, host), "")
	shared.Report(&response.Diagnostics, node.Problems(planned, seen, host, node.Addresses(facts), nil), " Nothing was changed.")
	for _, finding := range node.PreflightOne(node.Member{Host: host, Facts: facts}) {
		shared.Found(&response.Diagnostics, path.Root("host"), finding)
	}
	plan.fill(seen, planned)
	// Nothing downstream needs these, and a driver that is updated between plan and apply is no reason to fail.
	plan.Observed, plan.MemoryGiB = types.ObjectUnknown(observedTypes), types.Int64Unknown()
}

// planUpdate follows what Read observed, and warns where apply will have to stop.
func (r *nodeResource) planUpdate(ctx context.Context, plan *model, config, state model, response *resource.ModifyPlanResponse) {
	values := state.observed(ctx, &response.Diagnostics)
	seen := state.observation(values)
	before, pinned, ignored := state.accepted(), config.declared(), plan.ignored(ctx)
	if pinned.FabricAddress != nil && *pinned.FabricAddress != before.FabricAddress && *pinned.FabricAddress != seen.FabricAddress {
		// Read judged the address that was accepted so far; this one was never looked for.
		asked := *plan
		asked.FabricAddress, asked.Machine = config.FabricAddress, state.Machine
		now, _, err := r.look(ctx, asked, &response.Diagnostics)
		if err != nil {
			shared.Unable(&response.Diagnostics, path.Root("host"), "plan spark_node "+state.Host.ValueString(), err)
			return
		}
		seen = now
	}
	planned := node.Follow(pinned, &before, seen, ignored)
	plan.ID, plan.Name, plan.Machine, plan.MemoryGiB = state.ID, state.Name, state.Machine, state.MemoryGiB
	plan.Drift = shared.Strings(nil)
	if !config.FabricAddress.IsUnknown() {
		plan.FabricAddress = shared.OrNull(planned.FabricAddress)
	}
	if !config.GPUCount.IsUnknown() {
		plan.GPUCount = types.Int64Value(int64(planned.GPUs))
	}
	plan.setObserved(values.planned(*plan, planned, seen, ignored))
	for _, problem := range node.Problems(planned, seen, state.Host.ValueString(), "see spark_node.observed", ignored) {
		response.Diagnostics.AddAttributeWarning(path.Root(problem.Path), problem.Summary,
			problem.Detail+" Applying this plan will stop at this node with an error and change nothing that depends on it.")
	}
}

// planned is what shall be observed after an apply: what was accepted, and what is ignored as it is.
func (o observed) planned(plan model, accepted node.Accepted, seen node.Observed, ignored node.Ignored) observed {
	if !ignored.Has(node.KindReachable) {
		o.Reachable = types.BoolValue(true)
	}
	if !ignored.Has(node.KindFabricAddress) {
		o.FabricAddress = plan.FabricAddress
	}
	if !ignored.Has(node.KindGPUCount) {
		o.GPUCount = types.Int64Value(int64(max(accepted.GPUs, seen.GPUs))) // a surplus is seen, and stays
	}
	if !plan.Machine.IsNull() {
		o.Machine = plan.Machine
	}
	return o
}

// ticketKey is where the private state keeps what tells this resource from the others: Terraform plans
// one in several steps and hands this on between them.
const ticketKey = "ticket"

// claim refuses a machine that another resource of the plan stands for.
func (r *nodeResource) claim(ctx context.Context, plan model, machine node.Machine, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	ticket, diags := request.Private.GetKey(ctx, ticketKey)
	response.Diagnostics.Append(diags...)
	if ticket == nil {
		ticket = []byte(strconv.Quote(rand.Text()))
	}
	response.Diagnostics.Append(response.Private.SetKey(ctx, ticketKey, ticket)...)
	other, why := r.Data.Nodes.Claim(string(ticket), node.Claim{Host: plan.Host.ValueString(), Port: int(plan.Port.ValueInt64()), Machine: machine})
	if why != "" {
		response.Diagnostics.AddAttributeError(path.Root("host"), "One machine is declared twice",
			fmt.Sprintf("The spark_nodes with the hosts %s and %s are one machine: %s. Remove one of them; other resources can refer to the same spark_node. "+
				"To give a spark_node another name, write a moved block.", other.Host, plan.Host.ValueString(), why))
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
