package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Frame is what all our resources do alike; they embed it.
type Frame struct {
	// Type is the resource's type, as configurations write it.
	Type string
	// Data is nil before the provider is configured, and while its block waits for other resources:
	// plans then ask no host.
	Data  *Data
	waits string
}

// Metadata implements resource.Resource.
func (f *Frame) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = f.Type
}

// Configure implements resource.ResourceWithConfigure.
func (f *Frame) Configure(_ context.Context, request resource.ConfigureRequest, response *resource.ConfigureResponse) {
	f.take(request.ProviderData, &response.Diagnostics)
}

// take keeps what the provider hands over.
func (f *Frame) take(handed any, diags *diag.Diagnostics) {
	switch data := handed.(type) {
	case nil:
	case *Data:
		f.Data = data
	case Waiting:
		f.waits = string(data)
	default:
		diags.AddError("Unable to configure "+f.Type, fmt.Sprintf("The provider handed over %T. This is a bug of the provider.", handed))
	}
}

// Waiting is handed to the resources in place of Data while an attribute of the provider block, named
// by it, is not known yet.
type Waiting string

// Waits says that a host must be asked and cannot be yet, and reports what for.
func (f *Frame) Waits(diags *diag.Diagnostics) bool {
	if f.waits != "" {
		diags.AddError("Unable to refresh: the provider's "+f.waits+" is not known yet", fmt.Sprintf(
			"The provider block takes %s from a resource that is still to be applied, so that no host can be asked. "+
				"Apply that resource first (-target), write the value itself, or plan with -refresh=false.", path.Root(f.waits)))
	}
	return f.waits != ""
}

// Source is Frame for a data source.
type Source struct{ Frame }

// Metadata implements datasource.DataSource.
func (s *Source) Metadata(_ context.Context, _ datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = s.Type
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *Source) Configure(_ context.Context, request datasource.ConfigureRequest, response *datasource.ConfigureResponse) {
	s.take(request.ProviderData, &response.Diagnostics)
}

// Limit bounds an act by what the resource's timeouts say of it.
func Limit(ctx context.Context, says func(context.Context, time.Duration) (time.Duration, diag.Diagnostics), standard time.Duration, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	limit, problems := says(ctx, standard)
	diags.Append(problems...)
	return context.WithTimeout(ctx, limit)
}
