package hosttest

import (
	"encoding/json"
	"strings"
)

// serveFlags are arguments that the image's `vllm serve` knows: those of vLLM 0.17 that people use.
const serveFlags = `--allowed-local-media-path --api-key --api-server-count --async-scheduling --block-size --chat-template --code-revision
--compilation-config --config --config-format --cpu-offload-gb --data-parallel-address --data-parallel-backend --data-parallel-rank
--data-parallel-size --data-parallel-size-local --disable-custom-all-reduce --disable-log-stats --disable-uvicorn-access-log
--distributed-executor-backend --download-dir --dtype --enable-auto-tool-choice --enable-chunked-prefill --enable-expert-parallel --enable-log-requests
--enable-lora --enable-prefix-caching --enable-request-id-headers --enforce-eager --generation-config --gpu-memory-utilization --headless
--hf-overrides --hf-token --host --kv-cache-dtype --kv-cache-memory-bytes --limit-mm-per-prompt --load-format --logprobs-mode --lora-modules
--master-addr --master-port --max-log-len --max-lora-rank --max-model-len --max-num-batched-tokens --max-num-seqs --middleware
--model --nnodes --node-rank --no-enable-prefix-caching --pipeline-parallel-size --port --quantization --reasoning-parser --response-role
--revision --root-path --scheduling-policy --seed --served-model-name --skip-tokenizer-init --speculative-config --structured-outputs-config
--tensor-parallel-size --tokenizer --tokenizer-mode --tool-call-parser --tool-parser-plugin --trust-remote-code --uds`

// aboutFlags answers what an image is asked for the arguments of its `vllm serve`: its source, or its help.
func aboutFlags(command []string) (Outcome, bool) {
	switch {
	case len(command) == 3 && command[0] == "python3" && strings.Contains(command[2], "arg_utils.py"):
		list, err := json.Marshal(strings.Fields(serveFlags))
		return Outcome{Stdout: string(list) + "\n"}, err == nil
	case strings.Join(command, " ") == "vllm serve --help=all":
		var help strings.Builder
		for flag := range strings.FieldsSeq(serveFlags) {
			help.WriteString("  " + flag + "\n                        What it does. (default: None)\n")
		}
		return Outcome{Stdout: help.String()}, true
	}
	return Outcome{}, false
}
