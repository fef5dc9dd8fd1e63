package vllmdeployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
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
		diags.AddAttributeError(path.Root("api_key"), aKey.Summary, why)
		return false
	}
	o.key = vllm.NewKey(key.ValueString())
	return true
}

// aKey refuses what cannot be a key, without repeating it.
var aKey = shared.Word{Says: "printable ASCII without blanks", Summary: "Not an API key", Problem: vllm.CheckKey}
