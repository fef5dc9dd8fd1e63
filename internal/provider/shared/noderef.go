package shared

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// NodeRef is what a cluster takes of a spark_node. Each attribute is an edge on which changes
// travel, so there are only those that the cluster needs.
type NodeRef struct {
	ID            types.String `tfsdk:"id"`
	Host          types.String `tfsdk:"host"`
	Name          types.String `tfsdk:"name"`
	User          types.String `tfsdk:"user"`
	Port          types.Int64  `tfsdk:"port"`
	HostKey       types.String `tfsdk:"host_key"`
	DockerSocket  types.String `tfsdk:"docker_socket"`
	FabricAddress types.String `tfsdk:"fabric_address"`
	GPUCount      types.Int64  `tfsdk:"gpu_count"`
}

// NodeRefAttributes is the nested schema. All children are Optional and none is Computed: Terraform
// refuses a whole object for a nested attribute with computed children, and checks required ones
// before the object is known.
func NodeRefAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":             schema.StringAttribute{Optional: true, MarkdownDescription: "The node's id."},
		"host":           schema.StringAttribute{Optional: true, MarkdownDescription: "Name or address for SSH; the key of `nodes`."},
		"name":           schema.StringAttribute{Optional: true, MarkdownDescription: "Host name, for messages."},
		"user":           schema.StringAttribute{Optional: true, MarkdownDescription: "SSH user."},
		"port":           schema.Int64Attribute{Optional: true, MarkdownDescription: "SSH port."},
		"host_key":       schema.StringAttribute{Optional: true, MarkdownDescription: "Pinned SSH host key."},
		"docker_socket":  schema.StringAttribute{Optional: true, MarkdownDescription: "Docker socket on the node."},
		"fabric_address": schema.StringAttribute{Optional: true, MarkdownDescription: "Identity address of the node."},
		"gpu_count":      schema.Int64Attribute{Optional: true, MarkdownDescription: "GPUs that Ray offers there."},
	}
}

// Connection is how the referenced node is reached.
func (n NodeRef) Connection() fleet.Connection {
	return fleet.Connection{
		Host: n.Host.ValueString(), Port: int(n.Port.ValueInt64()), User: n.User.ValueString(),
		HostKey: n.HostKey.ValueString(), Socket: n.DockerSocket.ValueString(),
	}
}

// Unknown says that the node cannot be asked yet.
func (n NodeRef) Unknown() bool {
	return n.Host.IsUnknown() || n.User.IsUnknown() || n.Port.IsUnknown() || n.HostKey.IsUnknown() || n.DockerSocket.IsUnknown()
}

// NodeRefOf converts an object value; ok is false while it is unknown or null.
func NodeRefOf(ctx context.Context, object types.Object) (ref NodeRef, ok bool, diags diag.Diagnostics) {
	if object.IsNull() || object.IsUnknown() {
		return ref, false, nil
	}
	diags = object.As(ctx, &ref, basetypes.ObjectAsOptions{})
	return ref, !diags.HasError(), diags
}

// NodeRefsOf converts a list of objects; ok is false while the list or an element is unknown.
func NodeRefsOf(ctx context.Context, list types.List) (refs []NodeRef, ok bool, diags diag.Diagnostics) {
	if list.IsUnknown() {
		return nil, false, nil
	}
	for _, element := range list.Elements() {
		object, isObject := element.(types.Object)
		if !isObject || object.IsUnknown() {
			return nil, false, diags
		}
		ref, known, more := NodeRefOf(ctx, object)
		diags.Append(more...)
		if !known {
			return nil, false, diags
		}
		refs = append(refs, ref)
	}
	return refs, !diags.HasError(), diags
}
