package agent

// The containers that the agent shows: those that carry the label (any value), and those whose name
// begins so: what somebody made by hand in our place is seen too. It shows no others, because what they
// are configured with may be secret.
const (
	ContainerLabel  = "io.spark-stack.spark.resource"
	RayNamePrefix   = "ray-"
	ServeNamePrefix = "vllm-"
)

// ContainersRequest asks for all that a plan reads of an engine: its version, the list of containers,
// each of them and its image.
type ContainersRequest struct {
	// Socket is the engine's, on the node.
	Socket string `json:"socket"`
	// API is the highest version of Docker's API that the client speaks ("1.55"); the engine's own, if
	// that is lower, is used.
	API string `json:"api"`
}

// EngineAnswers are answers of a Docker engine, as its API gives them.
type EngineAnswers struct {
	Answers []EngineAnswer `json:"answers"`
}

// EngineAnswer is the answer to one GET.
type EngineAnswer struct {
	// Path without the API version: "/containers/json?all=1".
	Path   string            `json:"path"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	// Body is JSON, but for "/_ping".
	Body []byte `json:"body,omitempty"`
}
