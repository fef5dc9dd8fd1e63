package vllmdeployment

import (
	"context"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// model is a vllm_deployment in configuration, plan and state.
type model struct {
	Name           types.String `tfsdk:"name"`
	Cluster        types.Object `tfsdk:"cluster"`
	Model          types.Object `tfsdk:"model"`
	Image          types.String `tfsdk:"image"`
	TensorParallel types.Int64  `tfsdk:"tensor_parallel_size"`
	Port           types.Int64  `tfsdk:"port"`
	ServedName     types.String `tfsdk:"served_model_name"`
	Verify         types.String `tfsdk:"verify"`
	Args           types.List   `tfsdk:"args"`
	Env            types.Map    `tfsdk:"env"`
	options
	APIKey     types.String   `tfsdk:"api_key"`
	KeyVersion types.Int64    `tfsdk:"api_key_version"`
	ID         types.String   `tfsdk:"id"`
	Endpoint   types.String   `tfsdk:"endpoint"`
	Drift      types.List     `tfsdk:"drift"`
	Server     types.Object   `tfsdk:"server"`
	Weights    types.Map      `tfsdk:"weights"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

// depth is how much of the weights a look reads.
func (m model) depth() weights.Depth {
	if m.Verify.ValueString() == string(weights.Full) {
		return weights.Full
	}
	return weights.Quick
}

// clusterRef is what comes with cluster = ray_cluster.pair.
type clusterRef struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	Image      types.String `tfsdk:"image"`
	Address    types.String `tfsdk:"address"`
	GPUTotal   types.Int64  `tfsdk:"gpu_total"`
	Session    types.String `tfsdk:"session"`
	WeightsDir types.String `tfsdk:"weights_dir"`
	Nodes      types.Map    `tfsdk:"nodes"`
}

// nodeRef is one member of it.
type nodeRef struct {
	shared.Connection
	Name     types.String `tfsdk:"name"`
	Role     types.String `tfsdk:"role"`
	Address  types.String `tfsdk:"address"`
	GPUCount types.Int64  `tfsdk:"gpu_count"`
}

// modelRef is the model attribute.
type modelRef struct {
	Path     types.String `tfsdk:"path"`
	Repo     types.String `tfsdk:"repo"`
	Revision types.String `tfsdk:"revision"`
}

// opened is a deployment with its machines.
type opened struct {
	spec vllm.Spec
	// key is read from the configuration when something is applied: no plan and no state has it.
	key      vllm.Key
	machines map[string]fleet.Machine
	reached  shared.Connections
	// gpus are what each member offers to Ray, by host; gcsPort is where the GCS listens.
	gpus    map[string]int
	gcsPort int
}

// open converts to the domain; nothing is dialled yet. ok is false while something but the cluster's session is unknown.
func (m model) open(ctx context.Context, pool *fleet.Pool, diags *diag.Diagnostics) (opened, bool) {
	cluster, source, ok := m.refs(ctx, diags)
	if !ok {
		return opened{}, false
	}
	members, ok := cluster.members(ctx, diags)
	if !ok {
		return opened{}, false
	}
	args, argsKnown := shared.StringsOf(m.Args)
	env, envKnown := shared.StringMapOf(m.Env)
	if !argsKnown || !envKnown || m.Image.IsUnknown() || m.Port.IsUnknown() || m.KeyVersion.IsUnknown() || m.undecided() {
		return opened{}, false
	}
	out := opened{machines: map[string]fleet.Machine{}, reached: shared.Connections{}, gpus: map[string]int{}, spec: vllm.Spec{
		Name: m.Name.ValueString(), ServedName: m.ServedName.ValueString(), Image: m.Image.ValueString(),
		TensorParallel: int(m.TensorParallel.ValueInt64()), Port: int(m.Port.ValueInt64()), Args: args, Env: env, KeyVersion: m.KeyVersion.ValueInt64(), Options: m.chosen(),
		Source: weights.Source{Path: source.Path.ValueString(), Repo: source.Repo.ValueString(), Revision: source.Revision.ValueString()},
		Cluster: vllm.ClusterRef{
			Name: cluster.Name.ValueString(), Image: cluster.Image.ValueString(), Address: cluster.Address.ValueString(),
			GPUTotal: int(cluster.GPUTotal.ValueInt64()), Session: cluster.Session.ValueString(), WeightsDir: cluster.WeightsDir.ValueString(),
		},
	}}
	if _, port, err := net.SplitHostPort(out.spec.Cluster.Address); err == nil {
		out.gcsPort, _ = strconv.Atoi(port) // 0, if it is no number, means the default
	}
	if out.spec.Image == "" {
		out.spec.Image = out.spec.Cluster.Image
	}
	if out.spec.TensorParallel == 0 {
		out.spec.TensorParallel = out.spec.Cluster.GPUTotal
	}
	if out.spec.Name == "" {
		out.spec.Name = nameOf(out.spec.Source)
	}
	if out.spec.ServedName == "" {
		out.spec.ServedName = nameOf(out.spec.Source)
	}
	for _, host := range slices.Sorted(maps.Keys(members)) {
		ref := members[host]
		out.machines[host], out.reached[host] = pool.Machine(ref.To(host)), ref.Connection
		out.gpus[host] = int(ref.GPUCount.ValueInt64())
		out.spec.Cluster.Members = append(out.spec.Cluster.Members, vllm.Member{
			Host: host, Name: ref.Name.ValueString(), Role: ray.Role(ref.Role.ValueString()), Address: ref.Address.ValueString(),
		})
	}
	return out, true
}

// refs reads the nested objects; ok is false while a part that is needed is unknown.
func (m model) refs(ctx context.Context, diags *diag.Diagnostics) (cluster clusterRef, source modelRef, ok bool) {
	if m.Cluster.IsUnknown() || m.Model.IsUnknown() || m.Cluster.IsNull() || m.Model.IsNull() {
		return cluster, source, false
	}
	diags.Append(m.Cluster.As(ctx, &cluster, basetypes.ObjectAsOptions{})...)
	diags.Append(m.Model.As(ctx, &source, basetypes.ObjectAsOptions{})...)
	if diags.HasError() || cluster.Nodes.IsUnknown() || cluster.Nodes.IsNull() {
		return cluster, source, false
	}
	unknown := cluster.Name.IsUnknown() || cluster.Image.IsUnknown() || cluster.Address.IsUnknown() || cluster.GPUTotal.IsUnknown() ||
		cluster.WeightsDir.IsUnknown() || source.Path.IsUnknown() || source.Repo.IsUnknown() || source.Revision.IsUnknown()
	return cluster, source, !unknown
}

// members are the cluster's nodes by host; ok is false while one of them is unknown.
func (c clusterRef) members(ctx context.Context, diags *diag.Diagnostics) (members map[string]nodeRef, ok bool) {
	for _, element := range c.Nodes.Elements() {
		if element.IsUnknown() {
			return nil, false
		}
	}
	diags.Append(c.Nodes.ElementsAs(ctx, &members, false)...)
	for _, member := range members {
		if member.Unknown() {
			return nil, false
		}
	}
	return members, !diags.HasError()
}

// Unknown says that where a member is, how it is reached, or what it offers, is still unknown.
func (n nodeRef) Unknown() bool {
	return n.Connection.Unknown() || n.Address.IsUnknown() || n.GPUCount.IsUnknown() || n.Role.IsUnknown()
}

var notForNames = regexp.MustCompile(`[^a-z0-9._-]+`)

// nameOf makes a deployment's name from its model's: the last part, in Docker's alphabet.
func nameOf(source weights.Source) string {
	full := strings.TrimRight(source.Repo+source.Path, "/")
	last := full[strings.LastIndex(full, "/")+1:]
	return strings.Trim(notForNames.ReplaceAllString(strings.ToLower(last), "-"), "-._")
}

var serverTypes = map[string]attr.Type{
	"host": types.StringType, "container": types.StringType, "container_id": types.StringType, "image": types.StringType,
	"command": types.StringType, "env": types.MapType{ElemType: types.StringType}, "healthy": types.BoolType, "cluster_session": types.StringType,
	"differences": types.ListType{ElemType: types.StringType}, "api_key_version": types.Int64Type,
}

var weightTypes = map[string]attr.Type{"state": types.StringType, "files": types.Int64Type, "bytes": types.Int64Type}

// setWeights writes the state per host.
func (m *model) setWeights(states map[string]weights.State) {
	elements := make(map[string]attr.Value, len(states))
	for host, state := range states {
		elements[host] = types.ObjectValueMust(weightTypes, map[string]attr.Value{
			"state": types.StringValue(string(state.Condition)),
			"files": types.Int64Value(int64(state.Files)),
			"bytes": types.Int64Value(state.Bytes),
		})
	}
	m.Weights = types.MapValueMust(types.ObjectType{AttrTypes: weightTypes}, elements)
}
