package acceptance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// The attributes for arguments are in the command line of the plan, and change it in place.
func TestServeOptions(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	const lines = `
		max_model_len = 128
		gpu_memory_utilization = 0.8
		quantization = "fp8"
		dtype = "bfloat16"
		reasoning_parser = "qwen3"
		tool_call_parser = "hermes"
		speculative_config = jsonencode({ method = "mtp" })
		host = "0.0.0.0"
	`
	ws := clitest.New(t, config{deployment: lines}.in(w), w.env())
	plan := ws.Drifted()
	want := `vllm serve /models/tiny --served-model-name tiny --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 --distributed-executor-backend ray --max-model-len 128 ` +
		`--gpu-memory-utilization 0.8 --quantization fp8 --dtype bfloat16 --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser hermes ` +
		`--speculative-config '{"method":"mtp"}' --enforce-eager`
	server, _ := plan.Changes["vllm_deployment.tiny"].After["server"].(map[string]any)
	if got := server["command"]; got != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	ws.ApplyPlanned()
	ws.Empty()

	ws.Config(config{deployment: strings.Replace(lines, "128", "64", 1)}.in(w))
	plan = ws.Drifted()
	if diff := plan.Diff("vllm_deployment.tiny", 128.0, 64.0, "max_model_len"); diff != "" {
		t.Error(diff)
	}
	if actions := plan.Changes["vllm_deployment.tiny"].Actions; !slices.Equal(actions, []string{"update"}) {
		t.Errorf("planned %v", actions)
	}
	ws.ApplyPlanned()
	ws.Empty()

	ws.Config(config{deployment: lines + `args = ["--max-model-len=64"]`}.in(w))
	if text := ws.PlanFails(); !strings.Contains(text, "max_model_len is said twice") {
		t.Errorf("got %s", text)
	}
	ws.Config(config{deployment: lines}.in(w))
	ws.Destroy()
}

// A flag that the image's vLLM does not know is refused at plan where the image can be asked, else before
// the server would start; one that vanished with what to use in its place.
func TestServeUnknownFlag(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	gone := config{deployment: `args = ["--disable-log-requests", "--no-such-flag=1", "--enforce-eager"]`}
	ws := clitest.New(t, gone.in(w), w.env())
	ws.Drifted() // There is no container yet that could be asked.
	s := stage{w: w, ws: ws}
	says := []string{"vllm_deployment tiny with vllm_deployment.tiny",
		"does not know --disable-log-requests, --no-such-flag", "remove it.", "Nothing was stopped or started."}
	s.says(t, "apply", ws.ApplyPlannedFails(), says)
	if w.has(0, "vllm-tiny") {
		t.Error("the server was started")
	}

	ws.Config(config{}.in(w))
	ws.Apply()
	before := w.containers(t)
	ws.Config(gone.in(w))
	s.says(t, "plan", ws.PlanFails(), says)
	if !maps.Equal(before, w.containers(t)) {
		t.Error("the plan touched containers")
	}
	ws.Config(config{deployment: `args = ["--no-enable-prefix", "--max_num_seqs=4"]`}.in(w))
	ws.Apply() // Beginnings, underscores and negations are flags, too.
	ws.Empty()
	ws.Destroy()
}
