package vllm

import (
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/container"
)

func TestOptions(t *testing.T) {
	spec := deployment()
	spec.Cluster.GPUTotal = 12
	spec.Options = Options{
		PipelineParallel: 2, DataParallel: 3, Host: "192.168.200.12", MaxModelLen: 32768, GPUMemoryUtilization: 0.8, Quantization: "fp8", DType: "auto",
		ReasoningParser: "qwen3", ToolCallParser: "hermes", SpeculativeConfig: `{"method": "mtp"}`,
	}
	spec.Args = []string{"--enforce-eager"}
	want := `vllm serve /models/qwen --served-model-name qwen --host 192.168.200.12 --port 8000 --tensor-parallel-size 2 --distributed-executor-backend ray ` +
		`--pipeline-parallel-size 2 --data-parallel-size 3 --max-model-len 32768 --gpu-memory-utilization 0.8 --quantization fp8 --dtype auto --reasoning-parser qwen3 ` +
		`--enable-auto-tool-choice --tool-call-parser hermes --speculative-config '{"method": "mtp"}' --data-parallel-backend ray --enforce-eager`
	if got := container.CommandLine(ServeCommand(spec)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if spec.GPUs() != 12 || spec.Listen() != "192.168.200.12:8000" || len(Check(spec)) > 0 {
		t.Errorf("%d GPUs, listens at %s, %v", spec.GPUs(), spec.Listen(), Check(spec))
	}
	spec.Options.ManualToolChoice, spec.Options.DataParallel = true, 0
	spec.Options.KVCacheMemoryBytes, spec.Options.GPUMemoryUtilization = 1<<30, 0
	want = `vllm serve /models/qwen --served-model-name qwen --host 192.168.200.12 --port 8000 --tensor-parallel-size 2 --distributed-executor-backend ray ` +
		`--pipeline-parallel-size 2 --max-model-len 32768 --kv-cache-memory-bytes 1073741824 --quantization fp8 --dtype auto --reasoning-parser qwen3 ` +
		`--tool-call-parser hermes --speculative-config '{"method": "mtp"}' --enforce-eager`
	if got := container.CommandLine(ServeCommand(spec)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCheckOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options    Options
		args       []string
		path, says string
	}{
		"in args alone":      {args: []string{"--max-model-len", "1", "--host", "::", "-pp", "1"}},
		"twice":              {options: Options{MaxModelLen: 1}, args: []string{"--max_model_len=2"}, path: "args", says: "max_model_len is said twice"},
		"twice, abbreviated": {options: Options{MaxModelLen: 1}, args: []string{"--max-model", "2"}, path: "args", says: "max_model_len is said twice"},
		"twice, short":       {options: Options{PipelineParallel: 1}, args: []string{"-pp1"}, path: "args", says: "pipeline_parallel_size is said twice"},
		"host twice":         {options: Options{Host: "::"}, args: []string{"--host=0.0.0.0"}, path: "args", says: "host is said twice"},
		"tool choice twice":  {options: Options{ToolCallParser: "hermes"}, args: []string{"--enable-auto-tool-choice"}, path: "args", says: "enable_auto_tool_choice is said twice"},
		"both memories":      {options: Options{GPUMemoryUtilization: 0.8, KVCacheMemoryBytes: 1}, path: "kv_cache_memory_bytes", says: "kv_cache_memory_bytes and gpu_memory_utilization exclude each other"},
		"no JSON":            {options: Options{SpeculativeConfig: "mtp"}, path: "speculative_config", says: "speculative_config is no JSON object"},
		"no parser":          {options: Options{ManualToolChoice: true}, path: "enable_auto_tool_choice", says: "enable_auto_tool_choice says nothing without tool_call_parser"},
		"too many GPUs":      {options: Options{DataParallel: 2}, path: "tensor_parallel_size", says: "4 GPUs needed, the cluster will have 2"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := deployment()
			spec.Options, spec.Args = test.options, test.args
			problems := Check(spec)
			if test.says == "" && len(problems) == 0 {
				return
			}
			if len(problems) != 1 || problems[0].Path != test.path || problems[0].Summary != test.says {
				t.Errorf("got %v", problems)
			}
		})
	}
}
