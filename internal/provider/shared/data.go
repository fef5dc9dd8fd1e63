// Package shared has what the three resources have in common: the provider's data, references to
// nodes, and the one way from a typed error to a diagnostic.
package shared

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
)

// Data is what Configure hands to the resources.
type Data struct {
	Pool *fleet.Pool
	// KeepUnreachable goes on with the last known values when a host does not answer.
	KeepUnreachable bool
	// Nodes are those that were planned so far.
	Nodes Nodes
	// Servers are what those that were planned so far take of each cluster.
	Servers vllm.Bookings
}

// Progress reports a phase of a long act through the log.
func Progress(ctx context.Context, thing string) func(string) {
	return func(phase string) { tflog.Info(ctx, thing+": "+phase) }
}

// Strings makes a list value; never null.
func Strings(values []string) types.List {
	elements := make([]attr.Value, 0, len(values))
	for _, value := range values {
		elements = append(elements, types.StringValue(value))
	}
	return types.ListValueMust(types.StringType, elements)
}

// StringsOf reads a list of strings; ok is false while any is unknown. Null reads as nil.
func StringsOf(list types.List) (values []string, ok bool) {
	if list.IsUnknown() {
		return nil, false
	}
	for _, element := range list.Elements() {
		text, isString := element.(types.String)
		if !isString || text.IsUnknown() {
			return nil, false
		}
		values = append(values, text.ValueString())
	}
	return values, true
}

// StringMap makes a map value; never null.
func StringMap(values map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(values))
	for key, value := range values {
		elements[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, elements)
}

// StringMapOf reads a map of strings; ok is false while any is unknown. Null reads as an empty map.
func StringMapOf(values types.Map) (out map[string]string, ok bool) {
	out = map[string]string{}
	if values.IsUnknown() {
		return out, false
	}
	for key, element := range values.Elements() {
		text, isString := element.(types.String)
		if !isString || text.IsUnknown() {
			return out, false
		}
		out[key] = text.ValueString()
	}
	return out, true
}

// shortID is how many digits of a container id people read, as in `docker ps`.
const shortID = 12

// ContainerID is an id as state and plans show it; null if there is none.
func ContainerID(id string) types.String {
	if id == "" {
		return types.StringNull()
	}
	return types.StringValue(id[:min(len(id), shortID)])
}

// SameContainer compares an id as stored with one as Docker says it.
func SameContainer(stored, id string) bool { return ContainerID(stored).Equal(ContainerID(id)) }

// OrNull is a string value; null if it is empty.
func OrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
