package provider

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// settingsOf reads the provider's block, and the environment for what it leaves out. waits names an
// attribute whose value is not known yet.
func settingsOf(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) (defaults shared.Defaults, waits string) {
	written := map[string][]string{}
	for _, setting := range shared.Settings() {
		if setting.Env == "" {
			continue
		}
		words, known := wordsOf(ctx, config, setting, diags)
		if !known {
			return defaults, setting.Name
		}
		if words != nil {
			written[setting.Name] = words
		}
	}
	for _, setting := range shared.Settings() {
		words := written[setting.Name]
		if words == nil && setting.Env != "" && !otherKey(setting.Name, written) {
			words = fromEnvironment(setting, diags)
		}
		if words != nil {
			setting.Set(&defaults, words)
		}
	}
	return defaults, ""
}

// otherKey says that the block names its key in the other way: the environment's key would win over it.
func otherKey(name string, written map[string][]string) bool {
	return name == "private_key" && written["private_key_file"] != nil || name == "private_key_file" && written["private_key"] != nil
}

// wordsOf reads one attribute of the block; nil if it is not there.
func wordsOf(ctx context.Context, config tfsdk.Config, setting shared.Setting, diags *diag.Diagnostics) (words []string, known bool) {
	var value attr.Value
	at := path.Root(setting.Name)
	switch setting.Kind {
	case shared.Number:
		var number types.Int64
		diags.Append(config.GetAttribute(ctx, at, &number)...)
		value, words = number, []string{strconv.FormatInt(number.ValueInt64(), 10)}
	case shared.List:
		var list types.List
		diags.Append(config.GetAttribute(ctx, at, &list)...)
		if words, known = shared.StringsOf(list); !known {
			return nil, false
		}
		value = list
	default:
		var text types.String
		diags.Append(config.GetAttribute(ctx, at, &text)...)
		value, words = text, []string{text.ValueString()}
	}
	if value.IsNull() {
		return nil, true
	}
	return words, !value.IsUnknown()
}

// fromEnvironment reads one variable; nil if it is not set, or empty. Secrets are never repeated.
func fromEnvironment(setting shared.Setting, diags *diag.Diagnostics) []string {
	text := os.Getenv(setting.Env)
	if text == "" {
		return nil
	}
	words := []string{text}
	if setting.Kind == shared.List {
		words = strings.Split(text, ",")
	}
	for _, word := range words {
		if problem := setting.Problem(word); problem != "" {
			diags.AddAttributeError(path.Root(setting.Name), "Unable to read "+setting.Env, problem)
			return nil
		}
	}
	return words
}
