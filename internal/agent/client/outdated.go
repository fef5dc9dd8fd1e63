package client

import (
	"fmt"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// OutdatedError is an agent that a forced command of sshd starts and that is of another version: no
// upload can replace it, because such a key may not write.
type OutdatedError struct {
	// Protocol is what it speaks, Architecture Go's name of its platform.
	Protocol     int
	Architecture string
}

// Error implements error.
func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the agent that this SSH key's line in authorized_keys starts speaks protocol %d, and this provider speaks %d", e.Protocol, agent.ProtocolVersion)
}

// Advice is the next step.
func (e *OutdatedError) Advice() string {
	return fmt.Sprintf("Replace the program that the line names by this provider's: `terraform-provider-spark agent linux/%s` writes it to standard output. The guide \"Drift in CI\" shows how.", e.Architecture)
}
