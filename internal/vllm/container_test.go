package vllm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/container"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

func TestContainerSpec(t *testing.T) {
	spec := deployment()
	spec.Args = []string{"--max-model-len", "4096"}
	spec.Env = map[string]string{"NCCL_DEBUG": "INFO", "HF_HUB_OFFLINE": "0"}
	got, err := ContainerSpec(spec, Node{Facts: spark("aurora-1", "192.168.200.12")})
	if err != nil {
		t.Fatal(err)
	}
	want := engine.ContainerSpec{
		Name: "vllm-qwen", Image: image, Entrypoint: []string{},
		Command: []string{"vllm", "serve", "/models/qwen", "--served-model-name", "qwen", "--host", "0.0.0.0", "--port", "8000",
			"--tensor-parallel-size", "2", "--distributed-executor-backend", "ray", "--max-model-len", "4096"},
		Env: map[string]string{
			"VLLM_HOST_IP": "192.168.200.12", "RAY_ADDRESS": "192.168.200.12:6379", "RAY_NODE_IP_ADDRESS": "192.168.200.12",
			"RAY_OVERRIDE_NODE_IP_ADDRESS": "192.168.200.12", "GLOO_SOCKET_IFNAME": "enp1s0f0np0", "TP_SOCKET_IFNAME": "enp1s0f0np0",
			"VLLM_RPC_BASE_PATH": "/tmp/ray", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "0", "NCCL_DEBUG": "INFO",
			"VLLM_ENGINE_READY_TIMEOUT_S": "3600", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1800",
		},
		Mounts:      []engine.Mount{{Source: "/models", Target: "/models", ReadOnly: true}, {Source: "ray-pair-tmp", Target: "/tmp/ray", Volume: true}, {Source: "ray-pair-cache", Target: "/root/.cache", Volume: true}},
		NetworkMode: "host", IPCMode: "container:ray-pair", PIDMode: "container:ray-pair", AllGPUs: true,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(engine.ContainerSpec{}, "Labels")); diff != "" {
		t.Error(diff)
	}
	for label, value := range map[string]string{
		fleet.LabelResource: "vllm_deployment", fleet.LabelName: "qwen", fleet.LabelRole: "server", fleet.LabelCluster: "pair", LabelSession: "c0fc6ca4",
	} {
		if got.Labels[label] != value {
			t.Errorf("%s is %q, want %q", label, got.Labels[label], value)
		}
	}
}

// What an image bakes in for another cluster must not reach the ranks through the server.
func TestContainerSpecUnsetsWhatTheImageBrings(t *testing.T) {
	baked := map[string]string{"NCCL_IB_HCA": "mlx5_0", "UCX_NET_DEVICES": "eth0", "VLLM_HOST_IP": "10.0.0.1", "PATH": "/bin"}
	got, err := ContainerSpec(deployment(), Node{Facts: spark("aurora-1", "192.168.200.12"), ImageEnv: baked})
	if err != nil {
		t.Fatal(err)
	}
	line := container.CommandLine(got.Command)
	if !strings.HasPrefix(line, "env -u NCCL_IB_HCA -u UCX_NET_DEVICES vllm serve /models/qwen ") {
		t.Errorf("got %s", line)
	}
}

func TestContainerSpecInTheHome(t *testing.T) {
	spec := deployment()
	spec.Cluster.WeightsDir, spec.Source = "~/.cache/huggingface", weights.Source{Repo: "Qwen/Qwen3-8B", Revision: strings.Repeat("a", 40)}
	got, err := ContainerSpec(spec, Node{Facts: spark("aurora-1", "192.168.200.12")})
	if err != nil {
		t.Fatal(err)
	}
	const folder = "/home/spark/.cache/huggingface"
	if got.Mounts[0].Source != folder || got.Command[2] != folder+"/hub/models--Qwen--Qwen3-8B/snapshots/"+strings.Repeat("a", 40) {
		t.Errorf("got %v, %s", got.Mounts[0], got.Command[2])
	}
}

func TestContainerSpecFails(t *testing.T) {
	_, err := ContainerSpec(deployment(), Node{Facts: agent.Facts{Hostname: "aurora-1"}})
	var unknown *identity.Error
	if !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
	spec := deployment()
	spec.Source.Path = "/data"
	_, err = ContainerSpec(spec, Node{Facts: spark("aurora-1", "192.168.200.12")})
	var problem *weights.Problem
	if !errors.As(err, &problem) {
		t.Errorf("got %v", err)
	}
}

func TestServeCommand(t *testing.T) {
	spec := deployment()
	spec.Port, spec.ServedName, spec.TensorParallel = 0, "", 0
	spec.Args = []string{"--host=192.168.200.12", "--hf-overrides", `{"a": "it's"}`}
	want := `vllm serve /models/qwen --served-model-name qwen --port 8000 --tensor-parallel-size 1 --distributed-executor-backend ray --host=192.168.200.12 --hf-overrides '{"a": "it'\''s"}'`
	if got := container.CommandLine(ServeCommand(spec)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := spec.Listen(); got != "192.168.200.12:8000" {
		t.Errorf("listens at %s", got)
	}
	if got := deployment().Listen(); got != "127.0.0.1:8000" {
		t.Errorf("listens at %s", got)
	}
}
