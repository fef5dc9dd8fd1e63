package vllm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

func TestBookings(t *testing.T) {
	var bookings Bookings
	for _, step := range []struct{ name, cluster, says string }{
		{"a", "pair", ""},
		{"a", "pair", ""}, // planned once more
		{"b", "other", ""},
		{"b", "pair", "Cluster pair serves a already"},
		{"a", "pair", ""},
	} {
		spec := deployment()
		spec.Name, spec.Cluster.Name = step.name, step.cluster
		said := ""
		for _, problem := range bookings.Book(spec) {
			said += problem.Summary
		}
		if said != step.says {
			t.Errorf("%s on %s: %q, want %q", step.name, step.cluster, said, step.says)
		}
	}
}

// Who holds the GPUs is named by the start, too: it may belong to another configuration.
func TestStartNamesHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.containers = append(first.containers, engine.Container{ID: "x", Status: "running", Spec: engine.ContainerSpec{Name: "vllm-other",
			Labels: map[string]string{fleet.LabelResource: Resource, fleet.LabelName: "other", fleet.LabelCluster: "pair"}}})
		cluster := quiet()
		cluster.Gate = func(context.Context) error { return errors.New("2 of 2 GPUs are taken") }
		err := Start(t.Context(), deployment(), Key{}, both(first), cluster, nil)
		if err == nil || !strings.Contains(err.Error(), "serves vllm-other already: 2 of 2 GPUs are taken") {
			t.Errorf("got %v", err)
		}
	})
}
