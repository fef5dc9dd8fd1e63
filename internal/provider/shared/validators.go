package shared

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

type noSecrets struct{}

// NoSecrets refuses variables that carry a secret: what is configured lies in state and plan, and the
// environment of a container is shown by `docker inspect`.
func NoSecrets() validator.Map { return noSecrets{} }

// Description implements validator.Map.
func (noSecrets) Description(context.Context) string { return "no variable that carries a secret" }

// MarkdownDescription implements validator.Map.
func (v noSecrets) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateMap implements validator.Map.
func (noSecrets) ValidateMap(_ context.Context, request validator.MapRequest, response *validator.MapResponse) {
	for _, name := range slices.Sorted(maps.Keys(request.ConfigValue.Elements())) {
		if identity.CarriesSecret(name) {
			response.Diagnostics.AddAttributeError(request.Path.AtMapKey(name), name+" does not belong in env",
				"It carries a secret, and env is stored in state and plan and shown by `docker inspect`. Remove it. "+
					"Serving needs no token of a hub, for weights are read from the nodes; for an API that asks for a key, use api_key of vllm_deployment.")
		}
	}
}

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

type hostName struct{}

// HostName accepts a host without user and port, which are attributes of their own.
func HostName() validator.String { return hostName{} }

// Description implements validator.String.
func (hostName) Description(context.Context) string { return "a host name or address" }

// MarkdownDescription implements validator.String.
func (v hostName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (hostName) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	text := request.ConfigValue.ValueString()
	if address, err := ParseAddress(text); err != nil || address.Host != text {
		response.Diagnostics.AddAttributeError(request.Path, "Not a host",
			fmt.Sprintf("%q is no host name or address. User and port have attributes of their own; an IPv6 address has no brackets here.", text))
	}
}
