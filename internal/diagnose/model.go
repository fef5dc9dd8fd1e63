package diagnose

import (
	"fmt"
	"strings"
)

// modelRules know the model, the hub and the flags.
func modelRules() []rule {
	return []rule{
		{69, `(?:SafetensorError: )?Error while deserializing header: (\w+)|SafetensorError`, true, func(match []string, _ Evidence) (string, string) {
			return strings.TrimSuffix(fmt.Sprintf("A weight file is cut off or damaged (%s)", match[1]), " ()") + ": a copy or download did not end.",
				"Plan again: the deployment's weights name the host and the file, and apply fetches that file from a good node."
		}},
		{73, `GatedRepoError|gated repo|(?:401|403) Client Error[^\n]*huggingface`, true, fixed(
			"The hub refuses the model: its licence was not accepted by this account, or there is no token.",
			"Serving asks no hub unless env says so: remove HF_HUB_OFFLINE=0 from env and copy the model to a node with `hf download` and an account that accepted its licence.")},
		{74, `429 Client Error[^\n]*`, true, fixed(
			"The hub refuses because it is asked too often: something asks it at every start, although the files are here.",
			"Remove HF_HUB_OFFLINE=0 from env; the server then uses only what is on the node.")},
		{81, `Model architectures \[([^\]]*)\] are not supported`, true, func(match []string, evidence Evidence) (string, string) {
			return fmt.Sprintf("vLLM in the image %s does not know the architecture %s.", evidence.Image, match[1]), newerImage
		}},
		{81, "(?:model type `([^`]+)` but Transformers does not recognize|[Nn]ot recognized model type:? ?'?([\\w-]*))", true, func(match []string, evidence Evidence) (string, string) {
			return fmt.Sprintf("Transformers in the image %s does not know the model type %s.", evidence.Image, match[1]+match[2]), newerImage
		}},
		{83, `unrecognized arguments: ([^\n]+)`, true, func(match []string, evidence Evidence) (string, string) {
			return fmt.Sprintf("vLLM in the image %s does not know %s.", evidence.Image, strings.TrimSpace(match[1])),
				"Remove it from args; flags come and go between releases: `vllm serve --help=all` in the image lists them."
		}},
	}
}

const newerImage = "Use an image with a newer vLLM and transformers."
