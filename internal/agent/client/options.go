package client

import (
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Options say how the agent is started on a node. The zero value fits most.
type Options struct {
	// Folder is where the program lies on the node: absolute, or below "~/". Empty takes the user's
	// cache folder, or another one that can be written and run from.
	Folder string
	// Facts asks for the node's facts together with the start, and Containers for its containers: they
	// are answered as soon as the agent runs, without a round trip of their own. The first call of
	// Agent.Facts, and of Agent.Containers with the same request, takes that answer.
	Facts      bool
	Containers *agent.ContainersRequest

	// shared overrides sharedFolders, silence overrides silenceTimeout, patience overrides startTimeout.
	shared            []string
	silence, patience time.Duration
}

// folders are the candidates that the options leave.
func (o Options) folders() folders {
	f := folders{given: o.Folder, shared: o.shared}
	if f.shared == nil {
		f.shared = sharedFolders
	}
	return f
}
