package vllmdeployment

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
)

// options are the arguments of `vllm serve` that have attributes of their own.
type options struct {
	PipelineParallel     types.Int64   `tfsdk:"pipeline_parallel_size"`
	DataParallel         types.Int64   `tfsdk:"data_parallel_size"`
	Host                 types.String  `tfsdk:"host"`
	MaxModelLen          types.Int64   `tfsdk:"max_model_len"`
	GPUMemoryUtilization types.Float64 `tfsdk:"gpu_memory_utilization"`
	KVCacheMemoryBytes   types.Int64   `tfsdk:"kv_cache_memory_bytes"`
	Quantization         types.String  `tfsdk:"quantization"`
	DType                types.String  `tfsdk:"dtype"`
	ReasoningParser      types.String  `tfsdk:"reasoning_parser"`
	ToolCallParser       types.String  `tfsdk:"tool_call_parser"`
	AutoToolChoice       types.Bool    `tfsdk:"enable_auto_tool_choice"`
	SpeculativeConfig    types.String  `tfsdk:"speculative_config"`
}

// undecided says that one of them is not known yet.
func (o options) undecided() bool {
	for _, one := range []interface{ IsUnknown() bool }{
		o.PipelineParallel, o.DataParallel, o.Host, o.MaxModelLen, o.GPUMemoryUtilization, o.KVCacheMemoryBytes, o.Quantization,
		o.DType, o.ReasoningParser, o.ToolCallParser, o.AutoToolChoice, o.SpeculativeConfig,
	} {
		if one.IsUnknown() {
			return true
		}
	}
	return false
}

// chosen is what is set.
func (o options) chosen() vllm.Options {
	return vllm.Options{
		PipelineParallel: int(o.PipelineParallel.ValueInt64()), DataParallel: int(o.DataParallel.ValueInt64()), Host: o.Host.ValueString(),
		MaxModelLen: o.MaxModelLen.ValueInt64(), GPUMemoryUtilization: o.GPUMemoryUtilization.ValueFloat64(), KVCacheMemoryBytes: o.KVCacheMemoryBytes.ValueInt64(),
		Quantization: o.Quantization.ValueString(), DType: o.DType.ValueString(), ReasoningParser: o.ReasoningParser.ValueString(),
		ToolCallParser: o.ToolCallParser.ValueString(), ManualToolChoice: !o.AutoToolChoice.IsNull() && !o.AutoToolChoice.ValueBool(),
		SpeculativeConfig: o.SpeculativeConfig.ValueString(),
	}
}

// optionAttributes are their attributes. What is left out, vLLM decides.
func optionAttributes() map[string]schema.Attribute {
	text := func(says string) schema.Attribute {
		return schema.StringAttribute{Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}, MarkdownDescription: says}
	}
	number := func(says string) schema.Attribute {
		return schema.Int64Attribute{Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)}, MarkdownDescription: says}
	}
	return map[string]schema.Attribute{
		"pipeline_parallel_size": number("Stages that the layers are cut into (`--pipeline-parallel-size`). Default: 1."),
		"data_parallel_size":     number("Replicas of the model (`--data-parallel-size`), placed by Ray. Default: 1."),
		"host":                   text("Address that the API listens on (`--host`). Default: `0.0.0.0`, every address of the head."),
		"max_model_len":          number("Longest context in tokens (`--max-model-len`). Default: the model's own."),
		"gpu_memory_utilization": schema.Float64Attribute{
			Optional: true, Validators: []validator.Float64{float64validator.Between(0.01, 1)},
			MarkdownDescription: "vLLM's share of each GPU's memory (`--gpu-memory-utilization`). A Spark's is the host's memory too: 0.70 to 0.85 works, from 0.90 on it is risky.",
		},
		"kv_cache_memory_bytes":   number("KV cache of each GPU in bytes (`--kv-cache-memory-bytes`), in place of `gpu_memory_utilization`."),
		"quantization":            text("Quantization of the weights (`--quantization`). Default: what the model's configuration says."),
		"dtype":                   text("Type of weights and activations (`--dtype`), such as `bfloat16`. Default: what the model's configuration says."),
		"reasoning_parser":        text("Parser that takes the reasoning out of an answer (`--reasoning-parser`), such as `qwen3`."),
		"tool_call_parser":        text("Parser of tool calls (`--tool-call-parser`), such as `hermes`. The model then chooses tools by itself, unless `enable_auto_tool_choice` is false."),
		"enable_auto_tool_choice": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether the model may choose tools (`--enable-auto-tool-choice`). Default: true where `tool_call_parser` is set."},
		"speculative_config":      text("Speculative decoding (`--speculative-config`): `jsonencode({ method = \"mtp\", num_speculative_tokens = 2 })`."),
	}
}
