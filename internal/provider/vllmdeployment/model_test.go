package vllmdeployment

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// A cluster can be written by hand, so that any part of a member may be missing or not known yet.
func TestMembers(t *testing.T) {
	kinds := shared.With(map[string]attr.Type{
		"name": types.StringType, "role": types.StringType, "address": types.StringType, "gpu_count": types.Int64Type,
	}, shared.ConnectionTypes())
	member := func(name string, value attr.Value) attr.Value {
		values := shared.With(map[string]attr.Value{
			"name": types.StringValue("aurora-1"), "role": types.StringValue("head"), "address": types.StringValue("192.168.200.12"), "gpu_count": types.Int64Value(1),
		}, shared.ConnectionOf(types.Object{}))
		if name != "" {
			values[name] = value
		}
		return types.ObjectValueMust(kinds, values)
	}
	for name, test := range map[string]struct {
		member     attr.Value
		ok, failed bool
	}{
		"known":            {member("", nil), true, false},
		"unknown name":     {member("name", types.StringUnknown()), true, false}, // it is for messages
		"unknown":          {types.ObjectUnknown(kinds), false, false},
		"unknown address":  {member("address", types.StringUnknown()), false, false},
		"unknown port":     {member("port", types.Int64Unknown()), false, false},
		"unknown jumps":    {member("proxy_jump", types.ListUnknown(types.StringType)), false, false},
		"one unknown jump": {member("proxy_jump", types.ListValueMust(types.StringType, []attr.Value{types.StringUnknown()})), false, false},
		"null":             {types.ObjectNull(kinds), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			cluster := clusterRef{Nodes: types.MapValueMust(types.ObjectType{AttrTypes: kinds}, map[string]attr.Value{"10.1.230.180": test.member})}
			members, ok := cluster.members(t.Context(), &diags)
			if ok != test.ok || diags.HasError() != test.failed || len(members) != 1 && ok {
				t.Errorf("got %v, %v, %v", members, ok, diags)
			}
		})
	}
}
