// Package raycluster is the resource ray_cluster.
package raycluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// TypeName is the resource's type. It lacks the provider's prefix: configurations say provider = spark.
const TypeName = "ray_cluster"

// The default limits of an act; a cluster of two is up in about 10 s, the rest is patience.
const (
	applyTimeout  = 10 * time.Minute
	deleteTimeout = 5 * time.Minute
	// lastLook bounds the look that saves the truth after a failed or cancelled act.
	lastLook = 10 * time.Second
)

var (
	_ resource.ResourceWithConfigure   = (*clusterResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*clusterResource)(nil)
	_ resource.ResourceWithImportState = (*clusterResource)(nil)
)

type clusterResource struct{ shared.Frame }

// New makes the resource.
func New() resource.Resource { return &clusterResource{shared.Frame{Type: TypeName}} }

// opened is a cluster with its machines.
type opened struct {
	spec     ray.Spec
	machines map[string]fleet.Machine
	reached  shared.Connections
}

// open reads the declaration of a plan or state; nothing is dialled yet.
func (r *clusterResource) open(ctx context.Context, m model, diags *diag.Diagnostics) (opened, bool) {
	refs, known := m.members(ctx, diags)
	if diags.HasError() {
		return opened{}, false
	}
	spec, complete := m.spec(ctx, refs)
	if !known || !complete {
		diags.AddError("Unable to open ray_cluster "+m.Name.ValueString(), "A value that the cluster needs is still unknown. This is a bug of the provider.")
		return opened{}, false
	}
	return opened{spec: spec, machines: machines(r.Data.Pool, refs), reached: shared.ConnectionsOf(refs)}, true
}

// Create implements resource.Resource. What a failed attempt left behind and fits is kept.
func (r *clusterResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var plan model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Create, applyTimeout, &response.Diagnostics)
	defer cancel()
	cluster, ok := r.open(ctx, plan, &response.Diagnostics)
	if !ok {
		return
	}
	doing := "create ray_cluster " + plan.Name.ValueString()
	if !shared.MayChange(ctx, cluster.machines, doing, &response.Diagnostics) {
		return
	}
	seen, err := ray.Look(ctx, cluster.spec, cluster.machines)
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Empty(), doing, err)
		return
	}
	if len(seen.Foreign) > 0 { // before there is a state that a destroy would have to clear
		shared.Unable(&response.Diagnostics, path.Root("name"), doing, ray.Foreign(seen.Foreign[0], cluster.spec.Name))
		return
	}
	if r.judge(ctx, cluster, starting, doing, &response.Diagnostics); response.Diagnostics.HasError() {
		return
	}
	replace := ray.Decide(ray.Want(cluster.spec), seen.Nodes)
	r.apply(ctx, doing, plan, cluster, replace, nil, &response.State, &response.Diagnostics)
}

// apply acts, looks again, and stores what is; an act that failed half way stores the truth too.
func (r *clusterResource) apply(ctx context.Context, doing string, plan model, cluster opened, replace map[string]string, lives []string, state *tfsdk.State, diags *diag.Diagnostics) {
	failed := ray.Apply(ctx, cluster.spec, cluster.machines, replace, shared.Progress(ctx, "ray_cluster "+cluster.spec.Name))
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	seen, err := ray.Look(after, cluster.spec, cluster.machines)
	if err != nil {
		seen.Nodes = ray.Missing(cluster.spec)
	}
	lines := ray.Lines(ray.Living(ray.Want(cluster.spec), seen.Nodes, lives), seen.Nodes)
	plan.see(cluster.spec, seen.Nodes, lines)
	if plan.Address.IsUnknown() || plan.Address.IsNull() {
		plan.Address = types.StringValue(ray.Address(cluster.spec))
	}
	plan.prove(err == nil && seen.GCSError == nil, seen.Table.Open, diags)
	diags.Append(state.Set(after, plan)...)
	switch {
	case failed != nil:
		shared.Unable(diags, path.Empty(), doing, failed)
	case err != nil:
		shared.Unable(diags, path.Empty(), doing, err)
	case len(lines) > 0:
		diags.AddError("Unable to "+doing, "The containers were started, and still the cluster is not as declared:\n"+
			strings.Join(lines, "\n")+"\n\nPlan again to see what is.")
	}
}

// Read implements resource.Resource.
func (r *clusterResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	if r.Waits(&response.Diagnostics) {
		return
	}
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	cluster, ok := r.open(ctx, state, &response.Diagnostics)
	if !ok {
		return
	}
	seen, err := ray.Look(ctx, cluster.spec, cluster.machines)
	switch {
	case err != nil && cluster.reached.Keep(r.Data, err):
		// The node's own diff shows it; what was not looked at is not judged.
		response.Diagnostics.AddWarning("ray_cluster "+cluster.spec.Name+" was not looked at", err.Error()+"; going on with the last known values")
	case err != nil:
		shared.UnableKept(&response.Diagnostics, path.Empty(), "read ray_cluster "+cluster.spec.Name, err)
		return
	case seen.Gone():
		response.State.RemoveResource(ctx)
		return
	default:
		if state.Authenticated.IsNull() && seen.GCSError == nil { // imported
			state.Authenticated = types.BoolValue(cluster.spec.Authentication == ray.AuthToken && !seen.Table.Open)
		}
		state.see(cluster.spec, seen.Nodes, ray.Lines(ray.Living(ray.Want(cluster.spec), seen.Nodes, state.lives(ctx, nil)), seen.Nodes))
	}
	response.Diagnostics.Append(response.State.Set(ctx, state)...)
}

// Update implements resource.Resource. It refuses when the world moved since the plan, then
// replaces the containers that differ: all of them if the head's does.
func (r *clusterResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var plan, state model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Update, applyTimeout, &response.Diagnostics)
	defer cancel()
	cluster, ok := r.open(ctx, plan, &response.Diagnostics)
	if !ok {
		return
	}
	doing := "reconcile ray_cluster " + cluster.spec.Name
	if !shared.MayChange(ctx, cluster.machines, doing, &response.Diagnostics) {
		return
	}
	left, ok := r.leaving(ctx, state, cluster, &response.Diagnostics)
	if !ok {
		return
	}
	for _, member := range left.spec.Members {
		cluster.spec.Leaving = append(cluster.spec.Leaving, member.Address)
	}
	seen, err := ray.Look(ctx, cluster.spec, cluster.machines)
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Empty(), doing, err)
		return
	}
	lives := plan.lives(ctx, &state)
	replace := ray.Decide(ray.Living(ray.Want(cluster.spec), seen.Nodes, lives), seen.Nodes)
	for host := range plan.replacedHosts() {
		if _, decided := replace[host]; !decided {
			replace[host] = "planned to be replaced"
		}
	}
	if moved := plan.moved(replace, seen.Nodes); moved != "" {
		response.Diagnostics.AddError("Unable to "+doing, moved+"; run plan again\n\nNo container was changed before this check.")
		return
	}
	if len(left.spec.Members) > 0 && !r.destroy(ctx, left, doing, &response.Diagnostics) {
		return
	}
	r.apply(ctx, doing, plan, cluster, replace, lives, &response.State, &response.Diagnostics)
}

// leaving is the cluster as it was, with those members alone that are to leave it.
func (r *clusterResource) leaving(ctx context.Context, state model, cluster opened, diags *diag.Diagnostics) (opened, bool) {
	before, ok := r.open(ctx, state, diags)
	before.spec.Members = slices.DeleteFunc(slices.Clone(before.spec.Members), func(member ray.Member) bool {
		_, stays := cluster.machines[member.Host]
		return stays
	})
	return before, ok
}

// destroy removes a cluster, or some of its workers. With unreachable = "keep" members that do not
// answer are left behind.
func (r *clusterResource) destroy(ctx context.Context, cluster opened, doing string, diags *diag.Diagnostics) bool {
	if !shared.MayChange(ctx, cluster.machines, doing, diags) {
		return false
	}
	cluster.spec.Members = slices.DeleteFunc(slices.Clone(cluster.spec.Members), func(member ray.Member) bool {
		if !cluster.reached[member.Host].Keeps(r.Data) {
			return false
		}
		_, err := cluster.machines[member.Host].Facts(ctx)
		gone := err != nil && shared.Unreachable(err)
		if gone {
			name := cluster.spec.Name
			shared.LeftBehind(diags, member.Host, "container "+ray.ContainerName(name)+", volume "+ray.VolumeName(name)+" and ~/"+agent.SecretFolder+"/"+agent.RayToken(name), err)
		}
		return gone
	})
	err := ray.Destroy(ctx, cluster.spec, cluster.machines, shared.Progress(ctx, "ray_cluster "+cluster.spec.Name))
	if err != nil {
		shared.UnableDelete(diags, path.Empty(), doing, err)
	}
	return err == nil
}

// Delete implements resource.Resource.
func (r *clusterResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, state.Timeouts.Delete, deleteTimeout, &response.Diagnostics)
	defer cancel()
	cluster, ok := r.open(ctx, state, &response.Diagnostics)
	if !ok {
		return
	}
	r.destroy(ctx, cluster, "delete ray_cluster "+cluster.spec.Name, &response.Diagnostics)
}
