package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// firstUnknown names the first attribute of the provider block whose value is not known yet; empty
// if all are.
func (m providerModel) firstUnknown() string {
	for _, one := range []struct {
		name  string
		value attr.Value
	}{
		{"user", m.User}, {"port", m.Port}, {"private_key_file", m.PrivateKeyFile},
		{"known_hosts_file", m.KnownHostsFile}, {"unreachable", m.Unreachable},
	} {
		if one.value.IsUnknown() {
			return one.name
		}
	}
	return ""
}

// configured is what each of our resources implements.
type configured interface {
	resource.ResourceWithConfigure
	resource.ResourceWithModifyPlan
}

// awaiting is a resource whose provider block may wait for values of other resources. Its plan then
// asks no host (it has no data), and a refresh, which must ask one, says what it waits for.
type awaiting struct {
	configured
	provider *sparkProvider
}

// Read implements resource.Resource.
func (a awaiting) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	if name := a.provider.unknown; name != "" {
		response.Diagnostics.AddError("Unable to refresh: the provider's "+name+" is not known yet", fmt.Sprintf(
			"The provider block takes %s from a resource that is still to be applied, so that no host can be asked. "+
				"Apply that resource first (-target), write the value itself, or plan with -refresh=false.", path.Root(name)))
		return
	}
	a.configured.Read(ctx, request, response)
}

// await makes the factory of a resource that may have to wait.
func (p *sparkProvider) await(factory func() resource.Resource) func() resource.Resource {
	return func() resource.Resource {
		made := factory()
		if ours, ok := made.(configured); ok {
			return awaiting{configured: ours, provider: p}
		}
		return made
	}
}
