package shared

import (
	"maps"

	data "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	provider "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ofNode is the description on a spark_node.
func (s Setting) ofNode() string {
	switch {
	case s.Env == "":
		return s.What + " Default: " + s.Default + "."
	case s.Default == "":
		return s.What
	}
	return s.What + " Default: the provider's `" + s.Name + "`, then " + s.Default + "."
}

// ofProvider is the description in the provider's block.
func (s Setting) ofProvider() string {
	text := s.What + " Environment: `" + s.Env + "`"
	if s.Kind == List {
		text += ", separated by commas"
	}
	if s.Default == "" {
		return text + "."
	}
	return text + ". Default: " + s.Default + "."
}

// ConnectionAttributes are Connection's attributes of a spark_node.
func ConnectionAttributes() map[string]schema.Attribute {
	return connectionAttributes(true, Setting.ofNode)
}

// NodeConnectionAttributes are Connection's attributes inside a reference to a node. All are Optional,
// see [NodeRefAttributes].
func NodeConnectionAttributes() map[string]schema.Attribute {
	return connectionAttributes(true, func(s Setting) string { return s.What })
}

// SeenConnectionAttributes are Connection's attributes in a computed object.
func SeenConnectionAttributes() map[string]schema.Attribute {
	return connectionAttributes(false, func(s Setting) string { return "The node's own `" + s.Name + "`, if it has one." })
}

func connectionAttributes(optional bool, describe func(Setting) string) map[string]schema.Attribute {
	out := map[string]schema.Attribute{}
	for _, s := range Settings() {
		if !s.Node {
			continue
		}
		text := describe(s)
		switch s.Kind {
		case Number:
			one := schema.Int64Attribute{Optional: optional, Computed: !optional, MarkdownDescription: text}
			if optional {
				one.Validators = []validator.Int64{s}
			}
			out[s.Name] = one
		case List:
			one := schema.ListAttribute{ElementType: types.StringType, Optional: optional, Computed: !optional, MarkdownDescription: text}
			if optional {
				one.Validators = s.listValidators()
			}
			out[s.Name] = one
		case Text:
			one := schema.StringAttribute{Optional: optional, Computed: !optional, MarkdownDescription: text}
			if optional {
				one.Validators = []validator.String{s}
			}
			out[s.Name] = one
		}
	}
	return out
}

// SourceConnectionAttributes are Connection's attributes of a data source.
func SourceConnectionAttributes() map[string]data.Attribute {
	out := map[string]data.Attribute{}
	for _, s := range Settings() {
		switch {
		case !s.Node:
		case s.Kind == Number:
			out[s.Name] = data.Int64Attribute{Optional: true, Validators: []validator.Int64{s}, MarkdownDescription: s.ofNode()}
		case s.Kind == List:
			out[s.Name] = data.ListAttribute{ElementType: types.StringType, Optional: true, Validators: s.listValidators(), MarkdownDescription: s.ofNode()}
		default:
			out[s.Name] = data.StringAttribute{Optional: true, Validators: []validator.String{s}, MarkdownDescription: s.ofNode()}
		}
	}
	return out
}

// ProviderAttributes are the attributes of the provider's block.
func ProviderAttributes() map[string]provider.Attribute {
	out := map[string]provider.Attribute{}
	for _, s := range Settings() {
		switch {
		case s.Env == "":
		case s.Kind == Number:
			out[s.Name] = provider.Int64Attribute{Optional: true, Validators: []validator.Int64{s}, MarkdownDescription: s.ofProvider()}
		case s.Kind == List:
			out[s.Name] = provider.ListAttribute{ElementType: types.StringType, Optional: true, Validators: s.listValidators(), MarkdownDescription: s.ofProvider()}
		default:
			out[s.Name] = provider.StringAttribute{Optional: true, Sensitive: s.Secret, Validators: []validator.String{s}, MarkdownDescription: s.ofProvider()}
		}
	}
	return out
}

// With adds attributes to others.
func With[A any](attributes map[string]A, more map[string]A) map[string]A {
	maps.Copy(attributes, more)
	return attributes
}
