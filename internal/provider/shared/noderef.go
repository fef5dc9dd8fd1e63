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
	Connection
	ID            types.String `tfsdk:"id"`
	Host          types.String `tfsdk:"host"`
	Name          types.String `tfsdk:"name"`
	FabricAddress types.String `tfsdk:"fabric_address"`
	GPUCount      types.Int64  `tfsdk:"gpu_count"`
}

// NodeRefAttributes is the nested schema. All children are Optional and none is Computed: Terraform
// refuses a whole object for a nested attribute with computed children, and checks required ones
// before the object is known.
func NodeRefAttributes() map[string]schema.Attribute {
	return With(map[string]schema.Attribute{
		"id":             schema.StringAttribute{Optional: true, MarkdownDescription: "The node's id."},
		"host":           schema.StringAttribute{Optional: true, MarkdownDescription: "Name or address for SSH; the key of `nodes`."},
		"name":           schema.StringAttribute{Optional: true, MarkdownDescription: "Host name, for messages."},
		"fabric_address": schema.StringAttribute{Optional: true, MarkdownDescription: "Identity address of the node."},
		"gpu_count":      schema.Int64Attribute{Optional: true, MarkdownDescription: "GPUs that Ray offers there."},
	}, NodeConnectionAttributes())
}

// Reached is how the referenced node is reached.
func (n NodeRef) Reached() fleet.Connection { return n.To(n.Host.ValueString()) }

// Unknown says that the node cannot be asked yet.
func (n NodeRef) Unknown() bool { return n.Host.IsUnknown() || n.Connection.Unknown() }

// ConnectionsOf are the connections of referenced nodes, by host.
func ConnectionsOf(refs []NodeRef) Connections {
	out := Connections{}
	for _, ref := range refs {
		out[ref.Host.ValueString()] = ref.Connection
	}
	return out
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
