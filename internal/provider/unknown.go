package provider

import "github.com/hashicorp/terraform-plugin-framework/attr"

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
