package shared

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

type ipv4Validator struct{}

// IPv4 accepts one IPv4 address in its usual spelling.
func IPv4() validator.String { return ipv4Validator{} }

// Description implements validator.String.
func (ipv4Validator) Description(context.Context) string { return "an IPv4 address" }

// MarkdownDescription implements validator.String.
func (v ipv4Validator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (ipv4Validator) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	text := request.ConfigValue.ValueString()
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() {
		response.Diagnostics.AddAttributeError(request.Path, "Not an IPv4 address",
			fmt.Sprintf("%q is no IPv4 address. Write the address of an interface of the node, such as 192.168.200.12.", text))
	}
}
