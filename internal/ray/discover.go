package ray

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// LabelDeclared on each container is the declaration that it was made from, so that a cluster can be
// found again without its state. Secrets are refused in a declaration.
const LabelDeclared = "io.spark-stack.spark.declared"

// declared is what the label holds.
type declared struct {
	Image          string            `json:"image"`
	Port           int               `json:"port"`
	Env            map[string]string `json:"env,omitempty"`
	Args           []string          `json:"args,omitempty"`
	WeightsDir     string            `json:"weights_dir,omitempty"`
	Authentication string            `json:"authentication,omitempty"`
	Members        []declaredMember  `json:"members"` // head first
}

type declaredMember struct {
	Host    string `json:"host"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
	GPUs    int    `json:"gpus"`
}

// declaration is the label's value.
func declaration(spec Spec) string {
	all := declared{Image: spec.Image, Port: spec.port(), Env: spec.Env, Args: spec.Args, WeightsDir: spec.WeightsDir, Authentication: spec.Authentication}
	for _, one := range spec.Members {
		all.Members = append(all.Members, declaredMember{Host: one.Host, Name: one.Name, Address: one.Address, GPUs: one.GPUs})
	}
	text, _ := json.Marshal(all) // Texts and numbers can always be written.
	return string(text)
}

// Discover finds the declaration of the cluster whose head runs on a machine.
func Discover(ctx context.Context, name string, machine fleet.Machine) (Spec, error) {
	step := "find cluster " + name
	containers, err := machine.Containers(ctx)
	if err != nil {
		return Spec{}, &Error{Host: machine.Host(), Step: step, Cause: err}
	}
	spec := Spec{Name: name}
	container, exists := find(spec, containers)
	switch {
	case !exists:
		return Spec{}, &Error{Host: machine.Host(), Step: step, Cause: fmt.Errorf("there is no container %s", ContainerName(name)),
			Advice: "The id of a cluster is name@head-host: its name, and the host of its head as the configuration writes it."}
	case !ours(spec, container):
		return Spec{}, Foreign(machine.Host(), name)
	case container.Spec.Labels[fleet.LabelRole] != string(Head):
		return Spec{}, &Error{Host: machine.Host(), Step: step, Cause: errors.New("the node is a worker of the cluster and not its head"),
			Advice: "Import it by the host of its head."}
	}
	var found declared
	if err := json.Unmarshal([]byte(container.Spec.Labels[LabelDeclared]), &found); err != nil || len(found.Members) == 0 {
		return Spec{}, &Error{Host: machine.Host(), Step: step, Cause: fmt.Errorf("label %s of container %s cannot be read", LabelDeclared, container.Spec.Name),
			Advice: "The container was made by an earlier release. Remove it (docker rm -f " + container.Spec.Name + ") and let an apply make the cluster."}
	}
	spec.Image, spec.Port, spec.Env, spec.Args = found.Image, found.Port, found.Env, found.Args
	spec.WeightsDir, spec.Authentication = found.WeightsDir, found.Authentication
	for i, one := range found.Members {
		role := Worker
		if i == 0 {
			role = Head
		}
		spec.Members = append(spec.Members, Member{Host: one.Host, Name: one.Name, Role: role, Address: one.Address, GPUs: one.GPUs})
	}
	return spec, nil
}
