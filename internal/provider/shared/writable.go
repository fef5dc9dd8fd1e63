package shared

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// MayChange says whether an act on machines may begin. An SSH key that may only look stops it, before
// anything is changed anywhere.
func MayChange[Machines ~map[string]fleet.Machine](ctx context.Context, machines Machines, doing string, diags *diag.Diagnostics) bool {
	err := fleet.Writable(ctx, machines)
	if err != nil {
		Unable(diags, path.Empty(), doing, err)
	}
	return err == nil
}
