package vllmdeployment

import (
	"context"

	"github.com/spark-stack/terraform-provider-spark/internal/progress"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// tracked is how far a deployment is, for the log and for `terraform-provider-spark watch`.
type tracked struct {
	*progress.Writer
	log func(string)
}

func track(ctx context.Context, name string) tracked {
	thing := "vllm_deployment " + name
	folder, err := progress.Folder()
	log := shared.Progress(ctx, thing)
	if err != nil {
		log("no other terminal can watch: " + err.Error())
	}
	return tracked{progress.Start(folder, thing), log}
}

// phase says what happens now.
func (t tracked) phase(phase string) {
	t.log(phase)
	t.Phase(phase)
}

// copies says how far the weights are.
func (t tracked) copies(now weights.Progress) {
	if now.Event != "" {
		t.log(now.Event)
	}
	t.log(now.String())
	var copies []progress.Copy
	for _, node := range now.Nodes {
		copies = append(copies, progress.Copy{
			Host: node.Host, From: node.From, File: node.File, Bytes: node.Bytes, Total: node.Total,
			Files: node.Files, TotalFiles: node.TotalFiles, Rate: node.Rate, Left: node.ETA.Seconds(),
		})
	}
	t.Copies(now.String(), copies)
}
