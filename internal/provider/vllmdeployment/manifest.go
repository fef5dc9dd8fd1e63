package vllmdeployment

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// manifestKey names the accepted manifest in the resource's private state: names, sizes and digests
// are of no use in a plan, and a big model has some hundred files.
const manifestKey = "manifest"

// kept reads private state.
type kept interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// keptManifest reads the accepted manifest; it is empty if none was accepted yet.
func keptManifest(ctx context.Context, state kept) (weights.Manifest, diag.Diagnostics) {
	var manifest weights.Manifest
	raw, diags := state.GetKey(ctx, manifestKey)
	if diags.HasError() || len(raw) == 0 {
		return manifest, diags
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		diags.AddError("Unable to read the accepted manifest", "The private state holds no manifest of ours: "+err.Error()+". Replace the deployment (terraform apply -replace=…); weights on the nodes are kept.")
	}
	return manifest, diags
}

func keepManifest(ctx context.Context, state private, manifest weights.Manifest) diag.Diagnostics {
	return keep(ctx, state, manifestKey, "the accepted manifest", manifest)
}

// keep writes one thing to the private state.
func keep(ctx context.Context, state private, key, what string, thing any) (diags diag.Diagnostics) {
	raw, err := json.Marshal(thing)
	if err != nil {
		diags.AddError("Unable to store "+what, err.Error())
		return diags
	}
	return state.SetKey(ctx, key, raw)
}

// weightsMoved compares the planned files and bytes with the manifest that is to be staged.
func (m model) weightsMoved(manifest weights.Manifest) string {
	for host, element := range m.Weights.Elements() {
		object, isObject := element.(types.Object)
		if !isObject {
			continue
		}
		files, _ := object.Attributes()["files"].(types.Int64)
		bytes, _ := object.Attributes()["bytes"].(types.Int64)
		if files.IsUnknown() || bytes.IsUnknown() {
			continue
		}
		if files.ValueInt64() != int64(len(manifest.Files)) || bytes.ValueInt64() != manifest.Bytes() {
			return fmt.Sprintf("The plan was made for a model of %d files and %d bytes on %s, the nodes now have one of %d files and %d bytes. Run plan again.",
				files.ValueInt64(), bytes.ValueInt64(), host, len(manifest.Files), manifest.Bytes())
		}
	}
	return ""
}
