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

// Word is a validator of one text.
type Word struct {
	// Says is what it must be, Summary names what is wrong with another.
	Says, Summary string
	// Problem says what is wrong with a text; empty if nothing is.
	Problem func(text string) string
}

// Description implements validator.String.
func (w Word) Description(context.Context) string { return w.Says }

// MarkdownDescription implements validator.String.
func (w Word) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

// ValidateString implements validator.String.
func (w Word) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	if problem := w.Problem(request.ConfigValue.ValueString()); problem != "" {
		response.Diagnostics.AddAttributeError(request.Path, w.Summary, problem)
	}
}

// IPv4 accepts one IPv4 address in its usual spelling.
func IPv4() validator.String {
	return Word{"an IPv4 address", "Not an IPv4 address", func(text string) string {
		if address, err := netip.ParseAddr(text); err != nil || !address.Is4() {
			return fmt.Sprintf("%q is no IPv4 address. Write the address of an interface of the node, such as 192.168.200.12.", text)
		}
		return ""
	}}
}

// HostName accepts a host without user and port, which are attributes of their own.
func HostName() validator.String {
	return Word{"a host name or address", "Not a host", func(text string) string {
		if address, err := ParseAddress(text); err != nil || address.Host != text {
			return fmt.Sprintf("%q is no host name or address. User and port have attributes of their own; an IPv6 address has no brackets here.", text)
		}
		return ""
	}}
}
