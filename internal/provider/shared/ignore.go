package shared

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// IgnoreDrift is the attribute that names kinds of drift to live with.
func IgnoreDrift(where string, kinds []string) schema.SetAttribute {
	return schema.SetAttribute{
		Optional: true, ElementType: types.StringType,
		Validators: []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.NoNullValues(), setvalidator.ValueStringsAre(stringvalidator.OneOf(kinds...))},
		MarkdownDescription: "Kinds of drift to live with: still shown in `" + where + "`, no longer in `drift` and in no plan. " +
			"Of `" + strings.Join(kinds, "`, `") + "`. (`ignore_changes` of Terraform cannot do this: it looks at the configuration only.)",
	}
}

// IgnoredOf reads it; ok is false while a name is unknown.
func IgnoredOf(ctx context.Context, kinds types.Set) (names []string, ok bool) {
	list, diags := types.ListValueFrom(ctx, types.StringType, kinds.Elements())
	if kinds.IsUnknown() || diags.HasError() {
		return nil, false
	}
	return StringsOf(list)
}
