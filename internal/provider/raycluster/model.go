package raycluster

import (
	"context"
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

var absoluteOrHome = regexp.MustCompile(`^(/|~/)`)

// model is a ray_cluster in configuration, plan and state.
type model struct {
	Name           types.String   `tfsdk:"name"`
	Image          types.String   `tfsdk:"image"`
	Head           types.Object   `tfsdk:"head"`
	Workers        types.List     `tfsdk:"workers"`
	Env            types.Map      `tfsdk:"env"`
	Args           types.List     `tfsdk:"args"`
	Port           types.Int64    `tfsdk:"port"`
	WeightsDir     types.String   `tfsdk:"weights_dir"`
	Authentication types.String   `tfsdk:"authentication"`
	Authenticated  types.Bool     `tfsdk:"authenticated"`
	IgnoreDrift    types.Set      `tfsdk:"ignore_drift"`
	ID             types.String   `tfsdk:"id"`
	Address        types.String   `tfsdk:"address"`
	GPUTotal       types.Int64    `tfsdk:"gpu_total"`
	Session        types.String   `tfsdk:"session"`
	Drift          types.List     `tfsdk:"drift"`
	Nodes          types.Map      `tfsdk:"nodes"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
}

var nodeTypes = shared.With(map[string]attr.Type{
	"name": types.StringType, "role": types.StringType, "address": types.StringType, "gpu_count": types.Int64Type,
	"container": types.StringType, "container_id": types.StringType, "image": types.StringType,
	"command": types.StringType, "env": types.MapType{ElemType: types.StringType}, "differences": types.ListType{ElemType: types.StringType},
}, shared.ConnectionTypes())

// members reads the referenced nodes; ok is false while one of them cannot be asked yet.
func (m model) members(ctx context.Context, diags *diag.Diagnostics) (refs []shared.NodeRef, ok bool) {
	head, known, more := shared.NodeRefOf(ctx, m.Head)
	diags.Append(more...)
	workers, allKnown, more := shared.NodeRefsOf(ctx, m.Workers)
	diags.Append(more...)
	if !known || !allKnown {
		return nil, false
	}
	refs = append([]shared.NodeRef{head}, workers...)
	for _, ref := range refs {
		if ref.Unknown() {
			return refs, false
		}
	}
	return refs, true
}

// spec converts to the domain; refs are its members. complete is false while a value that the containers
// need is unknown.
func (m model) spec(ctx context.Context, refs []shared.NodeRef) (spec ray.Spec, complete bool) {
	env, envKnown := shared.StringMapOf(m.Env)
	args, argsKnown := shared.StringsOf(m.Args)
	_, kindsKnown := shared.IgnoredOf(ctx, m.IgnoreDrift)
	complete = envKnown && argsKnown && kindsKnown && !m.Name.IsUnknown() && !m.Image.IsUnknown() && !m.Port.IsUnknown() && !m.WeightsDir.IsUnknown() && !m.Authentication.IsUnknown()
	spec = ray.Spec{
		Name: m.Name.ValueString(), Image: m.Image.ValueString(), Port: int(m.Port.ValueInt64()),
		Env: env, Args: args, WeightsDir: m.WeightsDir.ValueString(),
		Authentication: m.Authentication.ValueString(), Authenticated: m.Authenticated.ValueBool(),
	}
	for index, ref := range refs {
		role := ray.Worker
		if index == 0 {
			role = ray.Head
		}
		complete = complete && !ref.FabricAddress.IsUnknown() && !ref.GPUCount.IsUnknown() && !ref.Name.IsUnknown()
		spec.Members = append(spec.Members, ray.Member{
			Host: ref.Host.ValueString(), Name: nameOf(ref), Role: role,
			Address: ref.FabricAddress.ValueString(), GPUs: int(ref.GPUCount.ValueInt64()),
		})
	}
	return spec, complete
}

// lives are the kinds of drift to live with: those of the declaration, but for what it changes itself
// after before, which may be nil.
func (m model) lives(ctx context.Context, before *model) []string {
	kinds, _ := shared.IgnoredOf(ctx, m.IgnoreDrift) // plans wait until they are known
	if before == nil {
		return kinds
	}
	var changed []string
	for name, same := range map[string]bool{
		"image": m.Image.Equal(before.Image), "env": m.Env.Equal(before.Env), "args": m.Args.Equal(before.Args), "port": m.Port.Equal(before.Port),
		"head": m.Head.Equal(before.Head), "workers": m.Workers.Equal(before.Workers),
	} {
		if !same {
			changed = append(changed, name)
		}
	}
	return ray.Ignored(kinds, changed)
}

// nameOf falls back to the host: sentences need some name.
func nameOf(ref shared.NodeRef) string {
	if ref.Name.ValueString() == "" {
		return ref.Host.ValueString()
	}
	return ref.Name.ValueString()
}

// machines gives the connection of every member.
func machines(pool *fleet.Pool, refs []shared.NodeRef) map[string]fleet.Machine {
	all := make(map[string]fleet.Machine, len(refs))
	for _, ref := range refs {
		all[ref.Host.ValueString()] = pool.Machine(ref.Reached())
	}
	return all
}

// nodesOf reads the stored members back into the domain's form.
func nodesOf(nodes types.Map) map[string]ray.Node {
	all := make(map[string]ray.Node, len(nodes.Elements()))
	for host, element := range nodes.Elements() {
		object, isObject := element.(types.Object)
		if !isObject {
			continue
		}
		attributes := object.Attributes()
		text := func(name string) string {
			value, _ := attributes[name].(types.String)
			return value.ValueString()
		}
		count, _ := attributes["gpu_count"].(types.Int64)
		envMap, _ := attributes["env"].(types.Map)
		env, _ := shared.StringMapOf(envMap)
		list, _ := attributes["differences"].(types.List)
		differences, _ := shared.StringsOf(list)
		all[host] = ray.Node{
			Name: text("name"), Role: ray.Role(text("role")), Address: text("address"), GPUs: int(count.ValueInt64()),
			Container: text("container"), ContainerID: text("container_id"), Image: text("image"), Command: text("command"), Env: env, SpecDrift: differences,
		}
	}
	return all
}

// setNodes writes members; unknownIDs are the hosts whose container will be replaced.
func (m *model) setNodes(nodes map[string]ray.Node, unknownIDs map[string]string) {
	elements := make(map[string]attr.Value, len(nodes))
	reached := m.connections()
	for host, member := range nodes {
		id := shared.ContainerID(member.ContainerID)
		if _, unknown := unknownIDs[host]; unknown {
			id = types.StringUnknown()
		}
		attributes := map[string]attr.Value{
			"name": types.StringValue(member.Name), "role": types.StringValue(string(member.Role)),
			"address": shared.OrNull(member.Address), "gpu_count": types.Int64Value(int64(member.GPUs)),
			"container": types.StringValue(member.Container), "container_id": id,
			"image": shared.OrNull(member.Image), "command": shared.OrNull(member.Command),
			"env": shared.StringMap(identity.Masked(member.Env)), "differences": shared.Strings(member.SpecDrift),
		}
		connection, referenced := reached[host]
		if !referenced {
			connection = shared.ConnectionOf(types.Object{})
		}
		maps.Copy(attributes, connection)
		elements[host] = types.ObjectValueMust(nodeTypes, attributes)
	}
	m.Nodes = types.MapValueMust(types.ObjectType{AttrTypes: nodeTypes}, elements)
}

// connections copies how each node is reached from its reference, by host: a deployment needs it to reach
// the member by itself.
func (m model) connections() map[string]map[string]attr.Value {
	all := map[string]map[string]attr.Value{}
	for _, element := range append([]attr.Value{m.Head}, m.Workers.Elements()...) {
		object, isObject := element.(types.Object)
		if !isObject {
			continue
		}
		if host, isString := object.Attributes()["host"].(types.String); isString {
			all[host.ValueString()] = shared.ConnectionOf(object)
		}
	}
	return all
}
