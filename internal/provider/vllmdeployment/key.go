package vllmdeployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
)

// takeKey reads the API key, which only the configuration has.
func (o *opened) takeKey(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) bool {
	var key types.String
	diags.Append(config.GetAttribute(ctx, path.Root("api_key"), &key)...)
	if o.spec.KeyVersion == 0 || diags.HasError() {
		return !diags.HasError()
	}
	if why := vllm.CheckKey(key.ValueString()); why != "" {
		diags.AddAttributeError(path.Root("api_key"), "Not an API key", why)
		return false
	}
	o.key = vllm.NewKey(key.ValueString())
	return true
}

// keyValidator refuses what cannot be a key, without repeating it.
type keyValidator struct{}

// Description implements validator.String.
func (keyValidator) Description(context.Context) string { return "printable ASCII without blanks" }

// MarkdownDescription implements validator.String.
func (v keyValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (keyValidator) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	if why := vllm.CheckKey(request.ConfigValue.ValueString()); why != "" {
		response.Diagnostics.AddAttributeError(request.Path, "Not an API key", why)
	}
}
