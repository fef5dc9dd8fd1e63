package shared

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// MayChange says whether an act on machines may begin. An SSH key that may only look stops it, before
// anything is changed anywhere.
func MayChange(ctx context.Context, machines map[string]fleet.Machine, doing string, diags *diag.Diagnostics) bool {
	err := fleet.Writable(ctx, machines)
	if err != nil {
		Unable(diags, path.Empty(), doing, err)
	}
	return err == nil
}
