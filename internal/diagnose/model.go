package diagnose

import (
	"fmt"
	"strings"
)

const newerImage = "Use an image with a newer vLLM and transformers."

// modelRules know the model, the hub, the image and disks.
func modelRules() []Rule {
	return []Rule{
		{
			ID: "disk-full", Row: 67, Kind: Root,
			Any:     []string{"No space left on device", "ENOSPC", "Disk quota exceeded"},
			Message: "[Errno 28] No space left on device",
			Cause:   "A disk is full on that host.",
			Fix:     "`df -h` there, of the model's folder and of Docker's (`docker system df`); make room, then start again: what was copied is kept.",
		},
		{
			ID: "damaged-weights", Row: 69, Kind: Root, Fatal: true,
			Any:     []string{"SafetensorError", "Error while deserializing header", "MetadataIncompleteBuffer", "Cannot find any model weights"},
			Detail:  `header:? ?(\w+)`,
			Message: "SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
			Cause:   "A weight file is cut off, damaged or missing: a copy or download did not end.",
			Fix:     "Compare the sizes of the shards with the hub's, on every node, and fetch the bad ones again.",
			Here:    "Plan again: the deployment's weights name the host and the file, and apply fetches that file from a good node.",
			Refine: func(hit Hit, _ Evidence) Answer {
				if name := hit.Match[1]; strings.HasPrefix(name, "Metadata") || strings.HasPrefix(name, "Header") || strings.HasPrefix(name, "Invalid") {
					return Answer{Cause: fmt.Sprintf("A weight file is cut off or damaged (%s): a copy or download did not end.", name)}
				}
				return Answer{}
			},
		},
		{
			ID: "missing-shard", Row: 69, Kind: Root,
			Any:     []string{".safetensors"},
			Pattern: `(?:No such file or directory|FileNotFoundError|does not appear to have a file named|is missing)[^\n]*?([\w.-]+\.safetensors)`,
			Message: "No such file or directory: '…/model-00003-of-00039.safetensors'",
			Cause:   "A shard of the model is missing on that node.",
			Fix:     "Fetch it there; every shard of the index must be on every node.",
			Here:    "Plan again: the deployment's weights name the host and the file, and apply fetches it from a good node.",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{Cause: "The shard " + hit.Match[1] + " of the model is missing on that node."}
			},
		},
		{
			ID: "gated", Row: 73, Kind: Root, Fatal: true,
			Any:     []string{"GatedRepoError", "gated repo", "401 Client Error", "403 Client Error", "401 Unauthorized", "403 Forbidden"},
			Pattern: `GatedRepoError|gated repo|(?:401|403) (?:Client Error|Unauthorized|Forbidden).*(?:huggingface|hf\.co)`,
			Message: "GatedRepoError: 401 Client Error. Cannot access gated repo",
			Cause:   "The hub refuses the model: its licence was not accepted by this account, or there is no token.",
			Fix:     "Accept the licence on the model's page, and give a token of that account to the download (HF_TOKEN).",
			Here:    "Serving asks no hub unless env says so: remove HF_HUB_OFFLINE=0 from env and copy the model to a node with `hf download` and an account that accepted its licence.",
		},
		{
			ID: "no-repository", Kind: Root,
			Any:     []string{"RepositoryNotFoundError", "Repository Not Found for url", "is not a local folder and is not a valid model identifier", "RevisionNotFoundError"},
			Message: "RepositoryNotFoundError; is not a local folder and is not a valid model identifier",
			Cause:   "The hub knows no such model or revision, or the account may not see it.",
			Fix:     "Check the name and the revision; for a private model give a token. For a local model give its full path inside the container.",
		},
		{
			ID: "rate-limit", Row: 74, Kind: Root, Fatal: true,
			Any:     []string{"429 Client Error", "429 Too Many Requests", "HTTP status client error (429"},
			Pattern: `429.*(?:huggingface|hf\.co)|429 Client Error`,
			Message: "429 Client Error: Too Many Requests",
			Cause:   "The hub refuses because it is asked too often: something asks it at every start, although the files are here.",
			Fix:     "Set HF_HUB_OFFLINE=1 once the model is complete on every node.",
			Here:    "Remove HF_HUB_OFFLINE=0 from env; the server then uses only what is on the node.",
		},
		{
			ID: "offline-missing", Kind: Root,
			Any:     []string{"LocalEntryNotFoundError", "outgoing traffic has been disabled", "OfflineModeIsEnabled", "couldn't connect to 'https://huggingface.co'", "We couldn't connect to"},
			Message: "LocalEntryNotFoundError: … outgoing traffic has been disabled",
			Cause:   "A file of the model is not in the cache, and the hub may not be asked (HF_HUB_OFFLINE=1) or cannot be reached.",
			Fix:     "Complete the download on that node while online; check that the cache is mounted at HF_HOME.",
			Here:    "Plan again: the deployment's weights name what is missing, and apply brings it.",
		},
		{
			ID: "not-ours", Row: 76, Kind: Root,
			Any:     []string{"Permission denied"},
			Pattern: `(?:\[Errno 13\] |rsync: .*|mkdir: .*|cp: .*)Permission denied.*|Permission denied \(13\)`,
			Unless:  []string{"docker.sock", "publickey"},
			Message: "PermissionError: [Errno 13] Permission denied: '…/.cache/huggingface/hub/…'",
			Cause:   "Files on the host belong to another user: a container ran as root and left them in the cache.",
			Fix:     "`sudo chown -R $USER` that folder once, and run the download as the user.",
		},
		{
			ID: "wrong-route", Row: 77, Kind: Root,
			Any:     []string{"ssh: connect to host"},
			Pattern: `ssh: connect to host (\S+) port (\d+): (Connection timed out|No route to host|Network is unreachable|Connection refused)`,
			Message: "ssh: connect to host 192.168.200.13 port 22: Connection timed out",
			Cause:   "A host cannot be reached at the address that was taken.",
			Fix:     "Is it an address of the network that both ends share? `ip route get` it on the sender, and name the right one for the copy.",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{Cause: fmt.Sprintf("%s cannot be reached at port %s (%s).", hit.Match[1], hit.Match[2], hit.Match[3])}
			},
		},
		{
			ID: "broken-image", Row: 79, Kind: Root,
			Any:     []string{"undefined symbol", "ImportError: cannot import name", "ModuleNotFoundError: No module named"},
			Unless:  []string{"No module named 'ray'", "undefined symbol: nccl"},
			Pattern: `undefined symbol: (\S+)|ImportError: cannot import name '(\w+)' from '(?:vllm|transformers|torch|flashinfer|triton|ray|huggingface_hub|tokenizers|safetensors)|ModuleNotFoundError: No module named '((?:vllm|torch|transformers|flashinfer|triton|numpy|zmq|uvloop|fastapi|setuptools|pkg_resources|fastsafetensors)[\w.]*)'`,
			Message: "ImportError: … undefined symbol: …; cannot import name … from 'vllm…'",
			Cause:   "The image's own parts do not fit each other: a broken nightly build, or something was installed into it.",
			Fix:     "Use another build, pinned by its digest, and install nothing at the start.",
		},
		{
			ID: "unknown-model", Row: 81, Kind: Root, Fatal: true,
			Any:     []string{"are not supported for now", "are not supported. Supported", "Transformers does not recognize this architecture", "ot recognized model type", "Unrecognized model in", "has no vLLM implementation"},
			Detail:  "Model architectures? \\[([^\\]]*)\\] are not supported|model type `([^`]+)`|[Nn]ot recognized model type:? ?'?([\\w-]*)",
			Message: "Model architectures ['…'] are not supported for now; Transformers does not recognize this architecture",
			Cause:   "vLLM or transformers in the image does not know this model.",
			Fix:     newerImage,
			Refine: func(hit Hit, evidence Evidence) Answer {
				image := "the image"
				if evidence.Image != "" {
					image += " " + evidence.Image
				}
				switch {
				case hit.Match[1] != "":
					return Answer{Cause: fmt.Sprintf("vLLM in %s does not know the architecture %s.", image, hit.Match[1])}
				case hit.Match[2]+hit.Match[3] != "":
					return Answer{Cause: fmt.Sprintf("Transformers in %s does not know the model type %s.", image, hit.Match[2]+hit.Match[3])}
				}
				return Answer{}
			},
		},
		{
			ID: "other-weights", Kind: Root,
			Any:     []string{"There is no module or parameter named", "weights were not initialized from checkpoint", "Unknown quantization method", "quantization method is not supported", "is not supported for the current GPU. Minimum capability"},
			Message: "There is no module or parameter named …; Unknown quantization method",
			Cause:   "vLLM in the image cannot load this checkpoint: it does not know its layout or its quantization.",
			Fix:     newerImage,
		},
		{
			ID: "no-image", Kind: Root,
			Any:     []string{"manifest unknown", "pull access denied for", "manifest for "},
			Pattern: `manifest unknown|pull access denied|manifest for \S+ not found`,
			Message: "manifest unknown; pull access denied for …",
			Cause:   "The registry has no such image or tag, or does not give it to this account.",
			Fix:     "Check the reference; log in there (`docker login`) if the image is private.",
		},
		{
			ID: "remote-code", Kind: Root,
			Any:     []string{"`trust_remote_code=True`", "trust_remote_code=True` to allow", "requires you to execute the configuration file"},
			Message: "Please pass the argument `trust_remote_code=True`",
			Cause:   "The model brings code of its own, which vLLM runs only when told so.",
			Fix:     "Read that code; if you trust it, add --trust-remote-code.",
		},
		{
			ID: "does-not-divide", Kind: Root,
			Any:     []string{"must be divisible by tensor parallel size", "is not divisible by the number of", "is not divisible by weight quantization block", "must be divisible by the tensor"},
			Message: "Total number of attention heads (…) must be divisible by tensor parallel size (…)",
			Cause:   "The model cannot be cut into that many parts.",
			Fix:     "Use another --tensor-parallel-size (a power of two is usual), or --pipeline-parallel-size.",
		},
		{
			ID: "too-long", Kind: Root,
			Any:     []string{"is greater than the derived max_model_len"},
			Message: "User-specified max_model_len (…) is greater than the derived max_model_len",
			Cause:   "--max-model-len is more than the model was made for.",
			Fix:     "Lower --max-model-len, or leave it out.",
		},
		{
			ID: "hub-unreachable", Kind: Root,
			Any:     []string{"huggingface.co", "hf.co"},
			Pattern: `(?:HTTPSConnectionPool|ConnectionError|ConnectError|NewConnectionError|MaxRetryError).*(?:huggingface\.co|hf\.co)|(?:huggingface\.co|hf\.co).*(?:Network is unreachable|Name or service not known|Temporary failure in name resolution|Max retries exceeded)`,
			Unless:  []string{"Retrying", "retrying"},
			Message: "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded",
			Cause:   "The hub cannot be reached from that node.",
			Fix:     "If the model is complete there, set HF_HUB_OFFLINE=1; else give the node a way to the hub, or copy the model from another node.",
		},
	}
}
