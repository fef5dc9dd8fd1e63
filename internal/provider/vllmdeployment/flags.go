package vllmdeployment

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
)

// flagsKey names in the private state what is known of the image's `vllm serve`.
const flagsKey = "flags"

// keptFlags reads what is known; what cannot be read is asked again.
func keptFlags(ctx context.Context, state kept) (vllm.Flags, diag.Diagnostics) {
	var flags vllm.Flags
	raw, diags := state.GetKey(ctx, flagsKey)
	if diags.HasError() || len(raw) == 0 || json.Unmarshal(raw, &flags) != nil {
		return vllm.Flags{}, diags
	}
	return flags, diags
}

func keepFlags(ctx context.Context, state private, flags vllm.Flags) diag.Diagnostics {
	return keep(ctx, state, flagsKey, "what the image knows", flags)
}

// checkFlags reports a flag that the image's vLLM does not know, and returns what is known of it. That
// nothing could be asked is no error here: the start finds out.
func checkFlags(ctx context.Context, deployment opened, known vllm.Flags, doing string, diags *diag.Diagnostics) (vllm.Flags, bool) {
	flags, err := vllm.CheckFlags(ctx, deployment.spec, deployment.machines, known)
	var unknown *vllm.FlagError
	if errors.As(err, &unknown) {
		shared.Unable(diags, path.Root("args"), doing, err)
		return flags, false
	}
	return flags, true
}
