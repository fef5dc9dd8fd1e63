package shared

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// adviser is a typed error that knows its likely cause and the next step.
type adviser interface{ Advice() string }

// Unable adds the one form of an error diagnostic: "Unable to <verb> <thing> <name>", then what was
// seen, the likely cause with its evidence, and what to do next.
func Unable(diags *diag.Diagnostics, at path.Path, doing string, err error) {
	diags.AddAttributeError(at, "Unable to "+doing, Explain(err))
}

// UnableKept is Unable for a refresh: it says that nothing is lost and how to plan around the host.
func UnableKept(diags *diag.Diagnostics, at path.Path, doing string, err error) {
	detail := Explain(err) + "\n\nThe last known state is kept and nothing was changed."
	if Unreachable(err) {
		detail += ` Bring the host back, or plan without it: -target for the other resources, -refresh=false to skip reading, unreachable = "keep" in the provider block to go on with the last known values.`
	}
	diags.AddAttributeError(at, "Unable to "+doing, detail)
}

// UnableDelete is Unable for what shall go: it names the ways to go on without a host that is gone.
func UnableDelete(diags *diag.Diagnostics, at path.Path, doing string, err error) {
	detail := Explain(err)
	if Unreachable(err) {
		detail += `

Bring the host back, or go on without it: unreachable = "keep" in the provider block leaves behind what is on it, terraform state rm forgets the resource.`
	}
	diags.AddAttributeError(at, "Unable to "+doing, detail)
}

// LeftBehind warns that a host that does not answer keeps something of ours.
func LeftBehind(diags *diag.Diagnostics, host, what string, err error) {
	diags.AddWarning("Host "+host+" does not answer", err.Error()+"\nIt may still have "+what+": remove it there when the host is back.")
}

// Explain tells what was seen, the end of the log if a container has one, and what to do about it.
func Explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return "Interrupted. Apply again: it goes on from what is there."
	}
	text := err.Error()
	if log := evidence(err); log != "" {
		text += "\n\nThe end of its log:\n" + log
	}
	if advice := Advice(err); advice != "" {
		text += "\n\n" + advice
	}
	return text
}

// evidence is the part of a log that a typed error carries.
func evidence(err error) string {
	var cluster *ray.Error
	if errors.As(err, &cluster) && cluster.Evidence != "" {
		return cluster.Evidence
	}
	var server *vllm.Error
	if errors.As(err, &server) {
		return server.Log
	}
	return ""
}

// Advice is the next step that a typed error in the chain knows.
func Advice(err error) string {
	var docker *engine.Error
	if errors.As(err, &docker) && docker.Advice() != "" {
		return docker.Advice() // It knows more of the socket than the connection that could not be opened.
	}
	var known adviser
	if errors.As(err, &known) && known.Advice() != "" {
		return known.Advice()
	}
	var cluster *ray.Error
	if errors.As(err, &cluster) && cluster.Advice != "" {
		return cluster.Advice
	}
	var copied *weights.TransferError
	if errors.As(err, &copied) && copied.Advice != "" {
		return copied.Advice
	}
	var lost *weights.NoSourceError
	if errors.As(err, &lost) {
		return "Put these files back on one of the nodes (hf download, scp); the others get them from there. If the model was renewed under the same path, accept what is there now: terraform apply -replace=<address of the vllm_deployment>."
	}
	var helper *agent.Error
	if errors.As(err, &helper) {
		return agentAdvice(helper)
	}
	return ""
}

func agentAdvice(err *agent.Error) string {
	switch err.Code {
	case agent.TransferNoSpace:
		return "Free disk space there and apply again: files that are complete are kept."
	case agent.TransferDenied:
		return "Make the folder writable for the login user there, or choose another one."
	case agent.TransferConnect:
		return "The nodes must reach each other over the fabric on any TCP port: check the addresses (ip addr) and the firewall (sudo ufw status)."
	}
	return ""
}

// Unreachable says that the host did not answer at all, as opposed to answering with a refusal.
func Unreachable(err error) bool {
	var ssh *sshx.Error
	if !errors.As(err, &ssh) {
		return false
	}
	switch ssh.Kind {
	case sshx.NameNotFound, sshx.Unreachable, sshx.Refused, sshx.TimedOut, sshx.NotSSH, sshx.Lost,
		sshx.Busy, sshx.Penalised, sshx.JumpFailed, sshx.ProxyFailed:
		return true
	default:
		return false
	}
}
