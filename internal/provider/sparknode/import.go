package sparknode

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// identity is what stays of a node for its whole life. User and port may change, so they are none of it.
type identity struct {
	Host types.String `tfsdk:"host"`
}

func (m model) identity() identity { return identity{Host: m.Host} }

// IdentitySchema implements resource.ResourceWithIdentity; Terraform asks for it from 1.12 on.
func (r *nodeResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, response *resource.IdentitySchemaResponse) {
	response.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"host": identityschema.StringAttribute{RequiredForImport: true, Description: "Name or address of the node for SSH."},
	}}
}

// ImportState implements resource.ResourceWithImportState. All else is found by the read that follows.
func (r *nodeResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	text := request.ID
	if text == "" {
		response.Diagnostics.Append(request.Identity.GetAttribute(ctx, path.Root("host"), &text)...)
	}
	address, err := shared.ParseAddress(text)
	if response.Diagnostics.HasError() || err != nil {
		if err != nil {
			response.Diagnostics.AddError("Unable to import spark_node "+text, err.Error()+".")
		}
		return
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("host"), address.Host)...)
	if address.User != "" {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("user"), address.User)...)
	}
	if address.Port != 0 {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("port"), int64(address.Port))...)
	}
}
