package vllm

import (
	"errors"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// A plan and a start refuse the same, but for the server of another deployment, which a plan may remove.
func TestTaken(t *testing.T) {
	other := func(status string) engine.Container {
		return engine.Container{ID: "x", Status: status, Spec: engine.ContainerSpec{Name: "vllm-llama",
			Command: []string{"vllm", "serve", "--port", "8000"},
			Labels:  map[string]string{fleet.LabelResource: Resource, fleet.LabelName: "llama"}}}
	}
	named := func(labels map[string]string) engine.Container {
		return engine.Container{ID: "x", Spec: engine.ContainerSpec{Name: "vllm-qwen", Labels: labels}}
	}
	tests := map[string]struct {
		containers  []engine.Container
		listening   []int
		plan, start string // what it says; empty if it goes on
		attribute   string
	}{
		"free":                      {nil, []int{22, 6379}, "", "", ""},
		"port":                      {nil, []int{22, 8000}, "10.1.230.180: port 8000 is taken", "ss -ltnp", "port"},
		"another's server":          {[]engine.Container{other("running")}, []int{8000}, "", "port 8000 is taken", "port"},
		"another's server, stopped": {[]engine.Container{other("exited")}, []int{8000}, "port 8000 is taken", "port 8000 is taken", "port"},
		"stranger's container":      {[]engine.Container{named(nil)}, nil, "container vllm-qwen was not made by this provider", "docker rm -f vllm-qwen", "name"},
		"labels of another": {[]engine.Container{named(map[string]string{fleet.LabelResource: Resource, fleet.LabelName: "llama"})}, nil,
			"container vllm-qwen was not made", "container vllm-qwen was not made", "name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := head().onRay()
			first.facts.Listening = test.listening
			first.containers = append(first.containers, test.containers...)
			check := func(doing, says string, err error) {
				var taken *TakenError
				found := errors.As(err, &taken)
				switch {
				case found != (says != ""), found && (taken.Attribute() != test.attribute || !strings.Contains(err.Error(), says)):
					t.Errorf("%s: got %v, want %q", doing, err, says)
				}
			}
			check("plan", test.plan, CheckFree(t.Context(), deployment(), both(first)))
			run := &starter{spec: deployment(), machine: first, engine: fakeEngine{world: first}, report: func(string) {}}
			check("start", test.start, run.clear(t.Context(), found{facts: first.facts, containers: first.containers}))
			if len(first.journal) > 0 {
				t.Errorf("changed: %q", first.journal)
			}
		})
	}
}
