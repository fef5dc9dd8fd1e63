package raycluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// ModifyPlan implements resource.ResourceWithModifyPlan: it only translates what the domain decides,
// and sets every computed attribute.
func (r *clusterResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || r.Data == nil {
		return
	}
	var plan model
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	if response.Diagnostics.HasError() {
		return
	}
	refs, ok := plan.members(ctx, &response.Diagnostics)
	if !ok || response.Diagnostics.HasError() {
		return // a host is unknown: everything stays unknown
	}
	spec, complete := plan.spec(ctx, refs)
	shared.Report(&response.Diagnostics, ray.Check(spec), "")
	checkMembers(&response.Diagnostics, refs)
	if response.Diagnostics.HasError() {
		return
	}
	var state *model
	if !request.State.Raw.IsNull() {
		state = &model{}
		response.Diagnostics.Append(request.State.Get(ctx, state)...)
		before, known, diags := shared.NodeRefOf(ctx, state.Head)
		response.Diagnostics.Append(diags...)
		if known && before.Host.ValueString() != spec.Members[0].Host {
			response.RequiresReplace = append(response.RequiresReplace, path.Root("head").AtName("host"))
			state = nil
		}
		if state != nil && !state.Name.Equal(plan.Name) {
			state = nil // replaced: the name's own plan modifier says so
		}
	}
	plan.Drift = shared.Strings(nil)
	if !plan.Name.IsUnknown() {
		plan.ID = types.StringValue(spec.Name + "@" + spec.Members[0].Host)
	}
	switch {
	case !complete:
		plan.Nodes = types.MapUnknown(types.ObjectType{AttrTypes: nodeTypes})
		plan.Address, plan.GPUTotal, plan.Session = types.StringUnknown(), types.Int64Unknown(), types.StringUnknown()
		plan.Authenticated = types.BoolUnknown()
	case state == nil:
		plan.planAll(spec)
		r.preflight(ctx, plan, request.State.Raw.IsNull(), creating, &response.Diagnostics)
	default:
		plan.planUpdate(spec, *state, plan.lives(ctx, state))
		moves := !plan.Port.Equal(state.Port)
		if moves || len(plan.replacedHosts()) > 0 {
			when := repairing
			if moves || !plan.sameHosts(*state) {
				when = changing
			}
			r.preflight(ctx, plan, moves, when, &response.Diagnostics)
		}
	}
	if !response.Diagnostics.HasError() {
		response.Diagnostics.Append(response.Plan.Set(ctx, &plan)...)
	}
}

// planAll plans a new cluster.
func (m *model) planAll(spec ray.Spec) {
	want := ray.Want(spec)
	every := map[string]string{}
	for host := range want {
		every[host] = "new"
	}
	m.setNodes(want, every)
	m.Address = types.StringValue(ray.Address(spec))
	m.GPUTotal = types.Int64Value(int64(ray.GPUTotal(want)))
	m.Session = types.StringUnknown()
	m.planAuthenticated(types.BoolUnknown())
}

// planAuthenticated plans what the proof will say: known is what it said of a head that stays.
func (m *model) planAuthenticated(known types.Bool) {
	m.Authenticated = known
	if m.Authentication.ValueString() != ray.AuthToken {
		m.Authenticated = types.BoolValue(false)
	}
}

// planUpdate plans the members as wanted, and new containers where the seen ones differ in what is
// not lived with.
func (m *model) planUpdate(spec ray.Spec, state model, lives []string) {
	seen := nodesOf(state.Nodes)
	want := ray.Living(ray.Want(spec), seen, lives)
	for host, member := range want {
		member.ContainerID = seen[host].ContainerID
		want[host] = member
	}
	replace := ray.Decide(want, seen)
	m.setNodes(want, replace)
	m.Address = types.StringValue(ray.Address(spec))
	m.GPUTotal = types.Int64Value(int64(ray.GPUTotal(want)))
	m.Session = state.Session
	if len(replace) > 0 || !m.sameHosts(state) {
		m.Session = types.StringUnknown()
	}
	proved := state.Authenticated
	if proved.IsNull() || !m.Image.Equal(state.Image) || !m.Authentication.Equal(state.Authentication) {
		proved = types.BoolUnknown()
	}
	m.planAuthenticated(proved)
}

// preflight looks at the nodes, so that what cannot work fails before anything is changed. claims says
// whether the plan takes a name or port that the cluster does not hold now.
func (r *clusterResource) preflight(ctx context.Context, plan model, claims bool, when occasion, diags *diag.Diagnostics) {
	cluster, ok := r.open(ctx, plan, diags)
	if !ok {
		return
	}
	if r.judge(ctx, cluster, when, "plan ray_cluster "+cluster.spec.Name, diags); diags.HasError() {
		return
	}
	if err := ray.CheckImage(ctx, cluster.spec, cluster.machines); err != nil {
		shared.Unable(diags, path.Root("image"), "plan ray_cluster "+cluster.spec.Name, err)
		return
	}
	if !claims {
		return // a cluster that is replaced still holds its port and names
	}
	if err := ray.CheckFree(ctx, cluster.spec, cluster.machines); err != nil {
		shared.Unable(diags, path.Root("port"), "plan ray_cluster "+cluster.spec.Name, err)
	}
}

// see writes what is.
func (m *model) see(spec ray.Spec, nodes map[string]ray.Node, lines []string) {
	m.setNodes(nodes, nil)
	m.GPUTotal = types.Int64Value(int64(ray.GPUTotal(nodes)))
	m.Session = types.StringValue(ray.Session(nodes))
	m.Drift = shared.Strings(lines)
	if head := nodes[spec.Members[0].Host]; head.Address != "" {
		m.Address = types.StringValue(fmt.Sprintf("%s:%d", head.Address, spec.Port))
	}
}

// sameHosts says whether the declaration has the hosts that the cluster stands on.
func (m model) sameHosts(state model) bool {
	return maps.EqualFunc(m.Nodes.Elements(), state.Nodes.Elements(), func(_, _ attr.Value) bool { return true })
}

// replacedHosts are the members whose container id is planned unknown.
func (m model) replacedHosts() map[string]bool {
	hosts := map[string]bool{}
	for host, element := range m.Nodes.Elements() {
		if object, isObject := element.(types.Object); isObject && object.Attributes()["container_id"].IsUnknown() {
			hosts[host] = true
		}
	}
	return hosts
}

// moved says what happened on the nodes since the plan; empty if it still holds.
func (m model) moved(replace map[string]string, seen map[string]ray.Node) string {
	planned, ids := m.replacedHosts(), nodesOf(m.Nodes)
	for _, host := range slices.Sorted(maps.Keys(replace)) {
		if !planned[host] {
			return host + " changed since the plan (its container must be replaced but the plan keeps it: " + replace[host] + ")"
		}
	}
	for _, host := range slices.Sorted(maps.Keys(ids)) {
		if !planned[host] && !shared.SameContainer(ids[host].ContainerID, seen[host].ContainerID) {
			return host + " changed since the plan (it has another container now)"
		}
	}
	if !m.Session.IsUnknown() && m.Session.ValueString() != ray.Session(seen) {
		return "a container of the cluster was restarted since the plan"
	}
	return ""
}

// checkMembers finds references that lack what a cluster needs of a node: the nested attributes are
// all optional, so that whole nodes can be given. What is unknown still is not judged.
func checkMembers(diags *diag.Diagnostics, refs []shared.NodeRef) {
	lacks := func(value types.String) bool { return !value.IsUnknown() && value.ValueString() == "" }
	for index, ref := range refs {
		if !lacks(ref.Host) && !lacks(ref.FabricAddress) && !ref.GPUCount.IsNull() {
			continue
		}
		at := path.Root("head")
		if index > 0 {
			at = path.Root("workers").AtListIndex(index - 1)
		}
		diags.AddAttributeError(at, "Incomplete node", "host, fabric_address and gpu_count are needed. Give a whole node, such as spark_node.a, or an object with these three.")
	}
}

// prove writes what the last questions said of the token. One that could not be asked keeps what was
// planned, or proves nothing.
func (m *model) prove(answered, open bool, diags *diag.Diagnostics) {
	if !answered {
		if m.Authenticated.IsUnknown() {
			m.Authenticated = types.BoolValue(false)
		}
		return
	}
	protected := m.Authentication.ValueString() == ray.AuthToken && !open
	if m.Authentication.ValueString() == ray.AuthToken && open {
		diags.AddAttributeWarning(path.Root("authentication"), "Ray answers without a token",
			"The image's Ray has no token authentication (it came with Ray 2.52), so everybody who reaches port "+fmt.Sprint(m.Port.ValueInt64())+
				" of the head can run code in the cluster. Use a newer image, close the port to others, or say that it is meant: authentication = \"none\".")
	}
	if m.Authenticated.IsUnknown() {
		m.Authenticated = types.BoolValue(protected)
	}
}
