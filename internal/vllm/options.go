package vllm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Options are the arguments of `vllm serve` that have attributes of their own. A zero value leaves the
// choice to vLLM.
type Options struct {
	PipelineParallel, DataParallel int
	// Host is the address that the API listens on; empty is every one.
	Host string
	// MaxModelLen is the longest context, in tokens.
	MaxModelLen int64
	// GPUMemoryUtilization is vLLM's share of each GPU's memory, KVCacheMemoryBytes the KV cache of each
	// GPU in bytes: one or the other.
	GPUMemoryUtilization float64
	KVCacheMemoryBytes   int64
	Quantization, DType  string
	ReasoningParser      string
	ToolCallParser       string
	// ManualToolChoice leaves tools to requests that name one; else a parser turns the choice of the
	// model on.
	ManualToolChoice bool
	// SpeculativeConfig is a JSON object.
	SpeculativeConfig string
}

// option is an attribute with its flag and the value that is set; a flag without a value has none.
type option struct {
	attribute string
	// flags are all names of it, the first is the one that is used.
	flags []string
	set   bool
	value string
}

// table lists the options in the order of the command line.
func (o Options) table() []option {
	number := func(value int64) string { return strconv.FormatInt(value, 10) }
	return []option{
		{"pipeline_parallel_size", []string{"--pipeline-parallel-size", "-pp"}, o.PipelineParallel != 0, number(int64(o.PipelineParallel))},
		{"data_parallel_size", []string{"--data-parallel-size", "-dp"}, o.DataParallel != 0, number(int64(o.DataParallel))},
		{"max_model_len", []string{"--max-model-len"}, o.MaxModelLen != 0, number(o.MaxModelLen)},
		{"gpu_memory_utilization", []string{"--gpu-memory-utilization"}, o.GPUMemoryUtilization != 0, strconv.FormatFloat(o.GPUMemoryUtilization, 'f', -1, 64)},
		{"kv_cache_memory_bytes", []string{"--kv-cache-memory-bytes"}, o.KVCacheMemoryBytes != 0, number(o.KVCacheMemoryBytes)},
		{"quantization", []string{"--quantization", "-q"}, o.Quantization != "", o.Quantization},
		{"dtype", []string{"--dtype"}, o.DType != "", o.DType},
		{"reasoning_parser", []string{"--reasoning-parser"}, o.ReasoningParser != "", o.ReasoningParser},
		{"enable_auto_tool_choice", []string{"--enable-auto-tool-choice"}, o.ToolCallParser != "" && !o.ManualToolChoice, ""},
		{"tool_call_parser", []string{"--tool-call-parser"}, o.ToolCallParser != "", o.ToolCallParser},
		{"speculative_config", []string{"--speculative-config"}, o.SpeculativeConfig != "", o.SpeculativeConfig},
	}
}

// arguments are what the options say on the command line.
func (o Options) arguments() []string {
	var words []string
	for _, one := range o.table() {
		if !one.set {
			continue
		}
		words = append(words, one.flags[0])
		if one.value != "" {
			words = append(words, one.value)
		}
	}
	return words
}

// checkOptions refuses what is said twice, or cannot be.
func checkOptions(spec Spec, add adder) {
	if spec.Options.GPUMemoryUtilization != 0 && spec.Options.KVCacheMemoryBytes != 0 {
		add("kv_cache_memory_bytes", "kv_cache_memory_bytes and gpu_memory_utilization exclude each other", "Either the size of the KV cache is given, or vLLM takes what is left of its share of the memory. Remove one.")
	}
	if text := spec.Options.SpeculativeConfig; text != "" && json.Unmarshal([]byte(text), &map[string]any{}) != nil {
		add("speculative_config", "speculative_config is no JSON object", "Write speculative_config = jsonencode({ method = \"…\", num_speculative_tokens = 2 }).")
	}
	if spec.Options.ManualToolChoice && spec.Options.ToolCallParser == "" {
		add("enable_auto_tool_choice", "enable_auto_tool_choice says nothing without tool_call_parser", "Set tool_call_parser, or remove it.")
	}
	said := spec.Options.table()
	said = append(said, option{"host", []string{"--host"}, spec.Options.Host != "", spec.Options.Host})
	for _, one := range said {
		twice := func(arg string) bool {
			return slices.ContainsFunc(one.flags, func(flag string) bool { return isFlag(arg, flag) })
		}
		if at := slices.IndexFunc(spec.Args, twice); one.set && at >= 0 {
			add("args", fmt.Sprintf("%s is said twice", one.attribute), "%s sets it too: remove it from args.", spec.Args[at])
		}
	}
}

// bound is the address that the API listens on, as declared.
func (s Spec) bound() string {
	if s.Options.Host != "" {
		return s.Options.Host
	}
	if host, found := flagValue(s.Args, "--host"); found {
		return host
	}
	return "0.0.0.0"
}

// replicas are arguments for several replicas of the model: Ray places each of their ranks on any node,
// where vLLM's own way would look for all of them beside the server.
func (s Spec) replicas() []string {
	if _, set := flagValue(s.Args, "--data-parallel-backend", "-dpb"); set || s.Options.DataParallel < 2 {
		return nil
	}
	return []string{"--data-parallel-backend", "ray"}
}
