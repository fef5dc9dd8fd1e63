// Package vllmdeployment is the resource vllm_deployment.
package vllmdeployment

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// TypeName is the resource's type. It lacks the provider's prefix: configurations say provider = spark.
const TypeName = "vllm_deployment"

// The default limits. 119 GB of weights over one half of the fabric's cable take about 15 s at line
// rate and some minutes from a slow disk; loading them takes up to half an hour more.
const (
	applyTimeout  = 90 * time.Minute
	deleteTimeout = 5 * time.Minute
	// ownLimit is no limit: the time limits of the configuration are nearer.
	ownLimit = 24 * time.Hour
	// lastLook bounds the look that saves the truth after a failed or cancelled act.
	lastLook = 15 * time.Second
)

var (
	_ resource.ResourceWithConfigure  = (*deploymentResource)(nil)
	_ resource.ResourceWithModifyPlan = (*deploymentResource)(nil)
)

type deploymentResource struct{ shared.Frame }

// New makes the resource.
func New() resource.Resource { return &deploymentResource{shared.Frame{Type: TypeName}} }

// open reads a plan or state of which everything is known.
func (r *deploymentResource) open(ctx context.Context, m model, diags *diag.Diagnostics) (opened, bool) {
	deployment, ok := m.open(ctx, r.Data.Pool, diags)
	if !ok && !diags.HasError() {
		diags.AddError("Unable to open vllm_deployment "+m.Name.ValueString(), "A value that the deployment needs is still unknown. This is a bug of the provider.")
	}
	return deployment, ok && !diags.HasError()
}

// Create implements resource.Resource.
func (r *deploymentResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var plan model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Create, applyTimeout, &response.Diagnostics)
	defer cancel()
	deployment, ok := r.open(ctx, plan, &response.Diagnostics)
	if !ok || !deployment.takeKey(ctx, request.Config, &response.Diagnostics) {
		return
	}
	doing := "create vllm_deployment " + deployment.spec.Name
	if !shared.MayChange(ctx, deployment.machines, doing, &response.Diagnostics) {
		return
	}
	before, err := look(ctx, deployment, weights.Manifest{}, plan.depth())
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Empty(), doing, err)
		return
	}
	if moved := plan.weightsMoved(before.manifest); moved != "" {
		response.Diagnostics.AddAttributeError(path.Root("model"), "Unable to "+doing, moved)
		return
	}
	restart := vllm.Decide(vllm.Want(deployment.spec), before.server) != ""
	r.apply(ctx, doing, plan, deployment, before.manifest, restart, &response.State, response.Private, &response.Diagnostics)
}

// private is where the accepted manifest is kept between runs.
type private interface {
	kept
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// apply stages the weights, starts the server if it must, looks again and stores what is; an act
// that failed half way stores the truth too, but for a create that left no server behind.
func (r *deploymentResource) apply(ctx context.Context, doing string, plan model, deployment opened, manifest weights.Manifest, restart bool, state *tfsdk.State, keep private, diags *diag.Diagnostics) {
	fresh := state.Raw.IsNull()
	known, diagnostics := keptFlags(ctx, keep)
	diags.Append(diagnostics...)
	if restart {
		var ok bool
		if known, ok = checkFlags(ctx, deployment, known, doing, diags); !ok {
			return
		}
	}
	diags.Append(keepFlags(ctx, keep, known)...)
	if !plan.Timeouts.IsNull() {
		deployment.spec.StartLimit = ownLimit
	}
	accepted, started, failed := reconcile(ctx, deployment, manifest, restart)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	seen, err := look(after, deployment, accepted, weights.Quick)
	if err != nil {
		seen = unseen(deployment, accepted)
	}
	if fresh && failed != nil && (!started || err == nil && !seen.server.Exists()) {
		// Nothing of ours runs. With a state Terraform would delete before it creates again, and a
		// delete throws away the unfinished copies that the next create goes on with.
		shared.Unable(diags, path.Empty(), doing, failed)
		return
	}
	lines := seen.lines(deployment.spec)
	plan.see(deployment.spec, seen, lines)
	diags.Append(state.Set(after, plan)...)
	diags.Append(keepManifest(after, keep, seen.manifest)...)
	switch {
	case failed != nil:
		shared.Unable(diags, path.Empty(), doing, failed)
	case err != nil:
		shared.Unable(diags, path.Empty(), doing, err)
	case len(lines) > 0:
		diags.AddError("Unable to "+doing, "The server was started, and still the deployment is not as declared:\n"+strings.Join(lines, "\n")+"\n\nPlan again to see what is.")
	}
}

// Read implements resource.Resource.
func (r *deploymentResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	if r.Waits(&response.Diagnostics) {
		return
	}
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	manifest, diags := keptManifest(ctx, request.Private)
	response.Diagnostics.Append(diags...)
	if response.Diagnostics.HasError() {
		return
	}
	deployment, ok := r.open(ctx, state, &response.Diagnostics)
	if !ok {
		return
	}
	seen, err := look(ctx, deployment, manifest, state.depth())
	switch {
	case err != nil && deployment.reached.Keep(r.Data, err):
		// The node's own diff shows it; what was not looked at is not judged.
		response.Diagnostics.AddWarning("vllm_deployment "+deployment.spec.Name+" was not looked at", err.Error()+"; going on with the last known values")
	case err != nil:
		shared.UnableKept(&response.Diagnostics, path.Empty(), "read vllm_deployment "+deployment.spec.Name, err)
		return
	default:
		state.see(deployment.spec, seen, seen.lines(deployment.spec))
		response.Diagnostics.Append(keepManifest(ctx, response.Private, seen.manifest)...)
	}
	response.Diagnostics.Append(response.State.Set(ctx, state)...)
}

// Update implements resource.Resource. It refuses when the world moved since the plan.
func (r *deploymentResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var plan, state model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	manifest, diags := keptManifest(ctx, request.Private)
	response.Diagnostics.Append(diags...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, plan.Timeouts.Update, applyTimeout, &response.Diagnostics)
	defer cancel()
	deployment, ok := r.open(ctx, plan, &response.Diagnostics)
	if !ok || !deployment.takeKey(ctx, request.Config, &response.Diagnostics) {
		return
	}
	if !state.Model.Equal(plan.Model) {
		manifest = manifest.Renew() // another model: accept what one node has of it
	}
	doing := "reconcile vllm_deployment " + deployment.spec.Name
	if !shared.MayChange(ctx, deployment.machines, doing, &response.Diagnostics) {
		return
	}
	before, err := look(ctx, deployment, manifest, plan.depth())
	if err == nil && weights.Lost(before.manifest, before.weights) {
		if renewed, lost := look(ctx, deployment, manifest.Renew(), plan.depth()); lost == nil {
			before = renewed // as in the plan
		}
	}
	if err != nil {
		shared.Unable(&response.Diagnostics, path.Empty(), doing, err)
		return
	}
	restart := plan.restarts() || vllm.Decide(vllm.Want(deployment.spec), before.server) != "" || !before.complete()
	moved := plan.weightsMoved(before.manifest)
	if moved == "" && restart && !plan.restarts() {
		moved = "The server must be replaced, but the plan keeps it: " + strings.Join(before.lines(deployment.spec), "; ") + ". Run plan again."
	}
	if moved == "" && !restart && !shared.SameContainer(plan.serverText("container_id"), before.server.ContainerID) {
		moved = "The server has another container than the plan was made for. Run plan again."
	}
	if moved != "" {
		response.Diagnostics.AddError("Unable to "+doing, moved+"\n\nNothing of this deployment was changed before this check.")
		return
	}
	if !r.leave(ctx, state, deployment, doing, &response.Diagnostics) {
		return
	}
	r.apply(ctx, doing, plan, deployment, before.manifest, restart, &response.State, response.Private, &response.Diagnostics)
}

// leave removes the server from its old head, if the cluster's head moved to another host.
func (r *deploymentResource) leave(ctx context.Context, state model, deployment opened, doing string, diags *diag.Diagnostics) bool {
	before, ok := r.open(ctx, state, diags)
	if !ok {
		return false
	}
	if before.spec.Cluster.Head().Host == deployment.spec.Cluster.Head().Host {
		return true
	}
	return r.stop(ctx, before, doing, diags)
}

// Delete implements resource.Resource. The weights stay.
func (r *deploymentResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var state model
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if response.Diagnostics.HasError() {
		return
	}
	ctx, cancel := shared.Limit(ctx, state.Timeouts.Delete, deleteTimeout, &response.Diagnostics)
	defer cancel()
	deployment, ok := r.open(ctx, state, &response.Diagnostics)
	if !ok {
		return
	}
	r.stop(ctx, deployment, "delete vllm_deployment "+deployment.spec.Name, &response.Diagnostics)
}

// stop removes a server, and reports.
func (r *deploymentResource) stop(ctx context.Context, deployment opened, doing string, diags *diag.Diagnostics) bool {
	if !shared.MayChange(ctx, deployment.machines, doing, diags) {
		return false
	}
	warning, err := stop(ctx, deployment)
	if warning != "" {
		diags.AddWarning("GPUs are given back late", warning)
	}
	if err != nil {
		shared.Unable(diags, path.Empty(), doing, err)
	}
	return err == nil
}

// serverText reads one attribute of the planned server.
func (m model) serverText(name string) string {
	text, _ := m.Server.Attributes()[name].(types.String)
	return text.ValueString()
}

// restarts says whether the plan replaces the server's container.
func (m model) restarts() bool {
	return m.Server.IsUnknown() || m.Server.Attributes()["container_id"].IsUnknown()
}
