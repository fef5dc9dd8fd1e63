package vllmdeployment

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// ModifyPlan implements resource.ResourceWithModifyPlan: it only translates what the domain decides,
// and sets every computed attribute.
func (r *deploymentResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || r.Data == nil {
		return
	}
	var plan, config model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	response.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	if response.Diagnostics.HasError() {
		return
	}
	var state *model
	if !request.State.Raw.IsNull() {
		state = &model{}
		response.Diagnostics.Append(request.State.Get(ctx, state)...)
	}
	// These come from the configuration alone, never from the last state; but a name that was made
	// from the model stays when the model changes, so that the deployment is updated in place.
	plan.Name, plan.ServedName, plan.TensorParallel = config.Name, config.ServedName, config.TensorParallel
	if state != nil && config.Name.IsNull() {
		plan.Name = state.Name
	}
	if config.Name.IsUnknown() || config.ServedName.IsUnknown() || config.TensorParallel.IsUnknown() {
		return
	}
	deployment, ok := plan.open(ctx, r.Data.Pool, &response.Diagnostics)
	if !ok || response.Diagnostics.HasError() {
		return // something that decides is unknown: everything computed stays unknown
	}
	spec := deployment.spec
	plan.Name, plan.ServedName = types.StringValue(spec.Name), types.StringValue(spec.ServedName)
	plan.TensorParallel = types.Int64Value(int64(spec.TensorParallel))
	shared.Report(&response.Diagnostics, vllm.Check(spec), "")
	if !response.Diagnostics.HasError() {
		shared.Report(&response.Diagnostics, r.Data.Servers.Book(spec), "")
	}
	if response.Diagnostics.HasError() {
		return
	}
	plan.ID = types.StringValue(spec.Name + "@" + spec.Cluster.Head().Host)
	plan.Endpoint = types.StringValue("http://" + net.JoinHostPort(spec.Cluster.Head().Host, strconv.Itoa(spec.Port)) + "/v1")
	plan.Drift = shared.Strings(nil)

	if state != nil && !state.Name.Equal(plan.Name) {
		response.RequiresReplace = append(response.RequiresReplace, path.Root("name"))
		state = nil
	}
	if state == nil {
		r.planCreate(ctx, &plan, deployment, &response.Diagnostics)
	} else {
		manifest, diags := keptManifest(ctx, request.Private)
		response.Diagnostics.Append(diags...)
		flags, diags := keptFlags(ctx, request.Private)
		response.Diagnostics.Append(diags...)
		r.planUpdate(ctx, &plan, *state, deployment, manifest, flags, &response.Diagnostics)
	}
	if !response.Diagnostics.HasError() {
		response.Diagnostics.Append(response.Plan.Set(ctx, &plan)...)
	}
}

// planCreate looks at the nodes, so that what cannot work fails before anything is changed.
func (r *deploymentResource) planCreate(ctx context.Context, plan *model, deployment opened, diags *diag.Diagnostics) {
	doing := "plan vllm_deployment " + deployment.spec.Name
	manifest, err := discover(ctx, deployment, nil)
	if err != nil {
		shared.Unable(diags, path.Root("model"), doing, err)
		return
	}
	if !r.free(ctx, deployment, diags) {
		return
	}
	if err := checkImage(ctx, deployment); err != nil {
		shared.Unable(diags, path.Root("image"), doing, err)
		return
	}
	if _, ok := checkFlags(ctx, deployment, vllm.Flags{}, doing, diags); !ok {
		return
	}
	plan.planServer(vllm.Want(deployment.spec), sessionOf(plan.Cluster), true)
	plan.planWeights(deployment, manifest)
}

// planUpdate plans the server and the weights as wanted; the container is replaced if either differs.
func (r *deploymentResource) planUpdate(ctx context.Context, plan *model, state model, deployment opened, manifest weights.Manifest, flags vllm.Flags, diags *diag.Diagnostics) {
	if !state.Model.Equal(plan.Model) || len(manifest.Files) == 0 || renewed(ctx, deployment, manifest, state) {
		found, err := discover(ctx, deployment, manifest.Files)
		if err != nil {
			shared.Unable(diags, path.Root("model"), "plan vllm_deployment "+deployment.spec.Name, err)
			return
		}
		manifest = found
	}
	want, seen := vllm.Want(deployment.spec), state.server()
	want.ContainerID = seen.ContainerID
	session := sessionOf(plan.Cluster)
	plan.planWeights(deployment, manifest)
	if !state.Weights.Equal(plan.Weights) {
		announce(ctx, deployment, manifest, diags)
	}
	replace := session.IsUnknown() || vllm.Decide(want, seen) != "" || !state.Weights.Equal(plan.Weights)
	if replace && !r.free(ctx, deployment, diags) {
		return
	}
	if replace && want.Image != seen.Image {
		if err := checkImage(ctx, deployment); err != nil {
			shared.Unable(diags, path.Root("image"), "plan vllm_deployment "+deployment.spec.Name, err)
			return
		}
	}
	if want.Command != seen.Command || want.Image != seen.Image {
		if _, ok := checkFlags(ctx, deployment, flags, "plan vllm_deployment "+deployment.spec.Name, diags); !ok {
			return
		}
	}
	plan.planServer(want, session, replace)
}

// renewed says that no node has the accepted content of some file any more, as after the model was fetched anew
// under the same path on all of them.
func renewed(ctx context.Context, deployment opened, manifest weights.Manifest, state model) bool {
	for _, element := range state.Weights.Elements() {
		if object, isObject := element.(types.Object); isObject && object.Attributes()["state"].Equal(types.StringValue(string(weights.Complete))) {
			return false
		}
	}
	seen, err := look(ctx, deployment, manifest, weights.Quick)
	return err == nil && weights.Lost(seen.manifest, seen.weights)
}

// free reports whether a new server would find its name and port free. A head that may stay away
// (unreachable = "keep") is not judged.
func (r *deploymentResource) free(ctx context.Context, deployment opened, diags *diag.Diagnostics) bool {
	err := vllm.CheckFree(ctx, deployment.spec, deployment.machines)
	if err == nil || deployment.reached.Keep(r.Data, err) {
		return true
	}
	at := path.Empty()
	var taken *vllm.TakenError
	if errors.As(err, &taken) {
		at = path.Root(taken.Attribute())
	}
	shared.Unable(diags, at, "plan vllm_deployment "+deployment.spec.Name, err)
	return false
}

// planServer writes the wanted server.
func (m *model) planServer(want vllm.Server, session types.String, replace bool) {
	id := shared.ContainerID(want.ContainerID)
	if replace {
		id = types.StringUnknown()
	}
	m.setServer(want, session, id)
}

func (m *model) setServer(server vllm.Server, session, id types.String) {
	m.Server = types.ObjectValueMust(serverTypes, map[string]attr.Value{
		"host": shared.OrNull(server.Host), "container": types.StringValue(server.Container), "container_id": id,
		"image": shared.OrNull(server.Image), "command": shared.OrNull(server.Command), "env": shared.StringMap(identity.Masked(server.Env)),
		"healthy": types.BoolValue(server.Healthy), "cluster_session": session,
		"differences": shared.Strings(server.SpecDrift), "api_key_version": versionOf(server.KeyVersion),
	})
}

// versionOf is a version of the API key; null without one.
func versionOf(version int64) types.Int64 {
	if version == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(version)
}

// planWeights writes that every member holds the whole manifest.
func (m *model) planWeights(deployment opened, manifest weights.Manifest) {
	states := map[string]weights.State{}
	for _, member := range deployment.spec.Cluster.Members {
		states[member.Host] = weights.Wanted(manifest)
	}
	m.setWeights(states)
}

// server reads the stored server back into the domain's form.
func (m model) server() vllm.Server {
	healthy, _ := m.Server.Attributes()["healthy"].(types.Bool)
	envMap, _ := m.Server.Attributes()["env"].(types.Map)
	env, _ := shared.StringMapOf(envMap)
	list, _ := m.Server.Attributes()["differences"].(types.List)
	differences, _ := shared.StringsOf(list)
	version, _ := m.Server.Attributes()["api_key_version"].(types.Int64)
	return vllm.Server{
		Host: m.serverText("host"), Container: m.serverText("container"), ContainerID: m.serverText("container_id"),
		Image: m.serverText("image"), Command: m.serverText("command"), Env: env, Healthy: healthy.ValueBool(),
		ClusterSession: m.serverText("cluster_session"), SpecDrift: differences, KeyVersion: version.ValueInt64(),
	}
}

// see writes what is.
func (m *model) see(spec vllm.Spec, seen seen, lines []string) {
	m.setServer(seen.server, shared.OrNull(seen.server.ClusterSession), shared.ContainerID(seen.server.ContainerID))
	m.setWeights(seen.weights)
	m.Drift = shared.Strings(lines)
	if m.ID.IsUnknown() {
		m.ID = types.StringValue(spec.Name + "@" + spec.Cluster.Head().Host)
	}
}

func sessionOf(cluster types.Object) types.String {
	session, _ := cluster.Attributes()["session"].(types.String)
	return session
}
