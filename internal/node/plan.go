package node

import (
	"fmt"
	"slices"
)

// Accepted are the values that the declaration stands on.
type Accepted struct {
	FabricAddress string
	GPUs          int
	// Machine is the name of the machine, see [MachineOf]; empty if none can be told.
	Machine string
}

// The kinds of drift that a user can decide to live with, named as in `observed`.
const (
	KindFabricAddress = "fabric_address"
	KindGPUCount      = "gpu_count"
	KindReachable     = "reachable"
)

// Kinds are all kinds of drift that can be ignored. Another machine is none of them: it is accepted or
// it is wrong.
func Kinds() []string { return []string{KindFabricAddress, KindGPUCount, KindReachable} }

// Ignored are kinds of drift that are seen, and neither counted nor acted on.
type Ignored []string

// Has says whether a kind is ignored.
func (i Ignored) Has(kind string) bool { return slices.Contains(i, kind) }

// Declared is what the configuration pins; nil means "follow the node".
type Declared struct {
	FabricAddress *string
	GPUs          *int
}

// Follow plans the accepted values: pinned ones as written, else a new address is followed, gains
// of GPUs are followed, and losses are not. What is ignored is not followed, and nothing of another
// machine is. before is nil for a new node.
func Follow(declared Declared, before *Accepted, seen Observed, ignored Ignored) Accepted {
	planned := Accepted{FabricAddress: seen.FabricAddress, GPUs: seen.GPUs, Machine: seen.Machine.Name}
	if before != nil {
		stays := before.another(seen)
		planned.Machine = before.Machine
		if stays || ignored.Has(KindGPUCount) {
			planned.GPUs = before.GPUs
		}
		planned.GPUs = max(before.GPUs, planned.GPUs)
		if stays || ignored.Has(KindFabricAddress) || planned.FabricAddress == "" {
			planned.FabricAddress = before.FabricAddress
		}
	}
	if declared.FabricAddress != nil {
		planned.FabricAddress = *declared.FabricAddress
	}
	if declared.GPUs != nil {
		planned.GPUs = *declared.GPUs
	}
	return planned
}

// another says that not the accepted machine answered. Where none can be told it is none.
func (a Accepted) another(seen Observed) bool {
	return a.Machine != "" && seen.Machine.Name != "" && a.Machine != seen.Machine.Name
}

// Problem is something that apply cannot change: a warning in the plan, an error in apply.
type Problem struct {
	// Path is the attribute of the resource.
	Path string
	// Summary is one line, Detail what to do.
	Summary, Detail string
}

// Problems tells what stands between the planned values and the node. host is as written.
func Problems(planned Accepted, seen Observed, host, addresses string, ignored Ignored) []Problem {
	var problems []Problem
	who := fmt.Sprintf("Host %s (%s)", seen.Name, host)
	if planned.another(seen) {
		return []Problem{{
			Path:    "host",
			Summary: who + ": another machine answers",
			Detail: fmt.Sprintf("Its network card is %s, that of the accepted machine %s. Either the name or address leads to a wrong machine now (DNS, DHCP), "+
				"or the machine was exchanged: then accept it with terraform apply -replace=<address of the spark_node>.", seen.Machine.Name, planned.Machine),
		}}
	}
	switch {
	case ignored.Has(KindFabricAddress):
	case planned.FabricAddress == "":
		problems = append(problems, Problem{
			Path:    "fabric_address",
			Summary: who + ": no fabric address",
			Detail: "No interface with an RDMA device, or of 100 Gb/s, has an IPv4 address. Addresses of the node: " + addresses +
				".\nGive the fabric interface an address (netplan), or name one of these with fabric_address.",
		})
	case seen.FabricAddress == "":
		problems = append(problems, Problem{
			Path:    "fabric_address",
			Summary: fmt.Sprintf("%s: fabric address is gone, not %s", who, planned.FabricAddress),
			Detail: "The fabric interface has no IPv4 address now. Addresses of the node: " + addresses +
				".\nTerraform does not set addresses on hosts: restore it there (netplan; ip addr).",
		})
	case seen.FabricAddress != planned.FabricAddress:
		problems = append(problems, Problem{
			Path:    "fabric_address",
			Summary: fmt.Sprintf("%s: fabric address is %s, not %s", who, seen.FabricAddress, planned.FabricAddress),
			Detail: fmt.Sprintf("Terraform does not set addresses on hosts: restore it there, or accept the new one with fabric_address = %q.",
				seen.FabricAddress),
		})
	}
	if seen.GPUs < planned.GPUs && !ignored.Has(KindGPUCount) {
		detail := fmt.Sprintf("Terraform cannot bring back a GPU: check the host (nvidia-smi, dmesg), or accept the loss with gpu_count = %d.", seen.GPUs)
		if seen.GPUError != "" {
			detail = "nvidia-smi says: " + seen.GPUError + "\n" + detail
		}
		problems = append(problems, Problem{
			Path:    "gpu_count",
			Summary: fmt.Sprintf("%s: %d of %d GPUs present", who, seen.GPUs, planned.GPUs),
			Detail:  detail,
		})
	}
	return problems
}

// Unlisted are the problems of a new node whose GPUs cannot be counted; none if they can, or are declared.
func Unlisted(declared Declared, seen Observed, host string) []Problem {
	if seen.GPUError == "" || declared.GPUs != nil {
		return nil
	}
	return []Problem{{
		Path:    "gpu_count",
		Summary: fmt.Sprintf("Host %s (%s): GPUs cannot be counted", seen.Name, host),
		Detail:  "nvidia-smi says: " + seen.GPUError + "\nRepair the driver there, or write gpu_count = 0 for a node without GPU.",
	}}
}

// Lines are the drift sentences, judged against the accepted values. They are neutral: whether a
// value is pinned is not known while refreshing.
func Lines(accepted Accepted, seen Observed, ignored Ignored) []string {
	if accepted.another(seen) {
		return []string{fmt.Sprintf("%s: answers in place of the accepted machine (network card %s, expected %s)", seen.Name, seen.Machine.Name, accepted.Machine)}
	}
	lines := []string{}
	switch {
	case seen.FabricAddress == accepted.FabricAddress || ignored.Has(KindFabricAddress):
	case seen.FabricAddress == "":
		lines = append(lines, fmt.Sprintf("%s: fabric address is gone, expected %s", seen.Name, accepted.FabricAddress))
	default:
		lines = append(lines, fmt.Sprintf("%s: fabric address is %s, expected %s", seen.Name, seen.FabricAddress, accepted.FabricAddress))
	}
	if seen.GPUs < accepted.GPUs && !ignored.Has(KindGPUCount) { // more than accepted is no drift: it is followed, or declared to be left out
		line := fmt.Sprintf("%s: %d GPUs present, expected %d", seen.Name, seen.GPUs, accepted.GPUs)
		if seen.GPUError != "" {
			line += " (nvidia-smi: " + seen.GPUError + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// Moved says in one sentence what differs from the values that a plan was made for; empty if
// nothing does. A planned value that the node never had is a problem, not a move.
func Moved(planned Accepted, seen Observed, ignored Ignored) string {
	switch {
	case planned.another(seen):
		return fmt.Sprintf("The plan was made for the machine with the network card %s, now one with %s answers.", planned.Machine, seen.Machine.Name)
	case seen.FabricAddress != planned.FabricAddress && !ignored.Has(KindFabricAddress):
		return fmt.Sprintf("The plan was made for fabric address %s, the host now has %s.", orNone(planned.FabricAddress), orNone(seen.FabricAddress))
	case seen.GPUs < planned.GPUs && !ignored.Has(KindGPUCount):
		return fmt.Sprintf("The plan was made for %d GPUs, the host now has %d.", planned.GPUs, seen.GPUs)
	}
	return ""
}

func orNone(address string) string {
	if address == "" {
		return "none"
	}
	return address
}
