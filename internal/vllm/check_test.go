package vllm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

func TestCheck(t *testing.T) {
	args := func(list ...string) func(*Spec) { return func(s *Spec) { s.Args = list } }
	env := func(name string) func(*Spec) { return func(s *Spec) { s.Env = map[string]string{name: "x"} } }
	tests := map[string]struct {
		change func(*Spec)
		want   []string // "path: summary"
		detail string
	}{
		"good": {func(s *Spec) {
			s.Args = []string{"--max-model-len", "4096", "--gpu-memory-utilization=0.8", "--host", "192.168.200.12", "--enforce-eager", "--tokenizer-revision", "x"}
			s.Env = map[string]string{"NCCL_DEBUG": "INFO", "HF_HUB_OFFLINE": "0"}
		}, nil, ""},
		"a GPU is gone":          {func(s *Spec) { s.Cluster.GPUTotal = 1 }, []string{"tensor_parallel_size: 2 GPUs needed, the cluster will have 1"}, "Lower tensor_parallel_size or bring the missing GPU back. Nothing was changed."},
		"all GPUs are gone":      {func(s *Spec) { s.Cluster.GPUTotal = 0 }, []string{"tensor_parallel_size: 2 GPUs needed, the cluster will have 0"}, ""},
		"GPUs unknown":           {func(s *Spec) { s.Cluster.GPUTotal = -1 }, nil, ""},
		"pipeline ranks too":     {args("--pipeline-parallel-size=2"), []string{"tensor_parallel_size: 4 GPUs needed, the cluster will have 2"}, ""},
		"pipeline ranks, short":  {args("-pp", "3"), []string{"tensor_parallel_size: 6 GPUs needed, the cluster will have 2"}, ""},
		"identity in env":        {env("VLLM_HOST_IP"), []string{"env: VLLM_HOST_IP is set by the provider"}, "known by two addresses"},
		"HCA in env":             {env("NCCL_IB_HCA"), []string{"env: NCCL_IB_HCA is set by the provider"}, ""},
		"socket folder in env":   {env("VLLM_RPC_BASE_PATH"), []string{"env: VLLM_RPC_BASE_PATH is set by the provider"}, "for ever"},
		"tensor parallel":        {args("--tensor-parallel-size", "2"), []string{"args: --tensor-parallel-size does not belong in args"}, "Use tensor_parallel_size."},
		"tensor parallel, short": {args("-tp2"), []string{"args: -tp does not belong in args"}, ""},
		"underscores":            {args("--served_model_name=x"), []string{"args: --served-model-name does not belong in args"}, ""},
		"abbreviated":            {args("--tensor-par", "2"), []string{"args: --tensor-par does not belong in args"}, ""},
		"port":                   {args("--port=1"), []string{"args: --port does not belong in args"}, ""},
		"backend":                {args("--distributed-executor-backend", "mp"), []string{"args: --distributed-executor-backend does not belong in args"}, ""},
		"nodes":                  {args("--nnodes", "2", "--headless"), []string{"args: --nnodes does not belong in args", "args: --headless does not belong in args"}, ""},
		"API key":                {args("--api-key", "sesame"), []string{"args: --api-key does not belong in args"}, "Use api_key"},
		"TLS":                    {args("--ssl-keyfile=/k"), []string{"args: --ssl-keyfile does not belong in args"}, ""},
		"no port":                {func(s *Spec) { s.Port = 70000 }, []string{"port: 70000 is no port"}, ""},
		"Ray's port":             {func(s *Spec) { s.Port = 6379 }, []string{"port: Port 6379 is the cluster's own"}, "192.168.200.12:6379"},
		"another image":          {func(s *Spec) { s.Image = "other" }, []string{"image: The server's image is not the cluster's"}, ""},
		"no head":                {func(s *Spec) { s.Cluster.Members = s.Cluster.Members[:1] }, []string{"cluster: The cluster has no head"}, ""},
		"name":                   {func(s *Spec) { s.Name = "Qwen 3" }, []string{`name: "Qwen 3" cannot name a deployment`}, ""},
		"path outside":           {func(s *Spec) { s.Source.Path = "/data/qwen" }, []string{"model: Model path /data/qwen is not below weights_dir"}, "see only /models"},
		"branch":                 {func(s *Spec) { s.Source = weights.Source{Repo: "a/b", Revision: "main"} }, []string{`model: Revision "main" of a/b is not a commit`}, ""},
		"two homes": {func(s *Spec) {
			s.Source.Path, s.Cluster.WeightsDir = "~/m/qwen", "~/m"
			s.Cluster.Members[0].Home, s.Cluster.Members[1].Home = "/home/a", "/home/b"
		}, []string{"cluster: Model has different paths on the nodes"}, "absolute path"},
		"homes not known yet": {func(s *Spec) { s.Source.Path, s.Cluster.WeightsDir = "~/m/qwen", "~/m" }, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment()
			test.change(&spec)
			var got []string
			details := ""
			for _, one := range Check(spec) {
				got = append(got, one.Path+": "+one.Summary)
				details += one.Detail + "\n"
				if one.Detail == "" {
					t.Errorf("%s: no detail", one.Summary)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(details, test.detail) {
				t.Errorf("%q is not in %s", test.detail, details)
			}
		})
	}
}
