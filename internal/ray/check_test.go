package ray

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*Spec)
		want   []string // path: summary
		detail string
	}{
		"good": {change: func(*Spec) {}, want: []string{}},
		"good, all set": {change: func(s *Spec) {
			s.Port, s.WeightsDir = 0, "~/.cache/huggingface"
			s.Env = map[string]string{"NCCL_DEBUG": "INFO", "RAY_memory_monitor_refresh_ms": "250"}
			s.Args = []string{"--num-cpus=4", "--object-manager-port", "8076"}
		}, want: []string{}},
		"unknown": {change: func(s *Spec) { s.Name, s.Members[0].Address, s.Members[1].Address = "", "", "" }, want: []string{}},
		"name":    {change: func(s *Spec) { s.Name = "Pair_1" }, want: []string{"name: Invalid cluster name"}},
		"host twice": {
			change: func(s *Spec) { s.Members[1].Host = s.Members[0].Host },
			want:   []string{"workers: Host is a member twice"}, detail: "10.1.230.180 is the head already",
		},
		"one address": {
			change: func(s *Spec) { s.Members[1].Address = s.Members[0].Address },
			want:   []string{"workers: Two nodes with one identity address"}, detail: "aurora-1 and aurora-2 both have the identity address 192.168.200.12",
		},
		"loopback": {
			change: func(s *Spec) { s.Members[0].Address = "127.0.1.1" },
			want:   []string{"head: Invalid identity address"},
		},
		"all on loopback": {change: func(s *Spec) { s.Members[0].Address, s.Members[1].Address = "127.0.100.11", "127.0.100.12" }, want: []string{}},
		"no address":      {change: func(s *Spec) { s.Members[1].Address = "aurora-2" }, want: []string{"workers: Invalid identity address"}},
		"two heads":       {change: func(s *Spec) { s.Members[1].Role = Head }, want: []string{"workers: Wrong role"}},
		"GPUs":            {change: func(s *Spec) { s.Members[1].GPUs = -1 }, want: []string{"workers: Invalid GPU count"}},
		"identity in env": {
			change: func(s *Spec) { s.Env = map[string]string{"VLLM_HOST_IP": "1.2.3.4", "NCCL_IB_HCA": "x"} },
			want:   []string{"env: Managed variable in env", "env: Managed variable in env"}, detail: "NCCL_IB_HCA follows from",
		},
		"reserved args": {
			change: func(s *Spec) {
				s.Args = []string{"--node-ip-address=1.2.3.4", "--port", "6380", "--block", "--temp-dir=/x"}
			},
			want: []string{
				"args: Managed argument in args", "args: Managed argument in args",
				"args: Managed argument in args", "args: Managed argument in args",
			}, detail: "--node-ip-address is set by the provider (from fabric_address of the nodes)",
		},
		"secrets": {
			change: func(s *Spec) { s.Args = []string{"--redis-password=hunter2", "--api-token", "abc", "--num-cpus=4"} },
			want:   []string{"args: Secret in args", "args: Secret in args"}, detail: "--redis-password carries a secret",
		},
		"relative weights folder": {change: func(s *Spec) { s.WeightsDir = "models" }, want: []string{"weights_dir: Invalid weights folder"}},
		"climbing weights folder": {change: func(s *Spec) { s.WeightsDir = "~/../x" }, want: []string{"weights_dir: Invalid weights folder"}},
		"the home itself":         {change: func(s *Spec) { s.WeightsDir = "~/" }, want: []string{"weights_dir: Invalid weights folder"}},
		"a slash at the end":      {change: func(s *Spec) { s.WeightsDir = "/models/" }, want: []string{}},
		"no port":                 {change: func(s *Spec) { s.Port = 70000 }, want: []string{"port: Invalid GCS port"}},
		"a worker's port":         {change: func(s *Spec) { s.Port = 16379 }, want: []string{"port: Invalid GCS port"}, detail: "10002 to 19999"},
		"a worker's port, moved": {change: func(s *Spec) {
			s.Port, s.Args = 16379, []string{"--min-worker-port=30000", "--max-worker-port=30100"}
		}, want: []string{}},
		"the dashboard's port": {change: func(s *Spec) { s.Port = 8265 }, want: []string{"port: Invalid GCS port"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := pairSpec()
			test.change(&spec)
			got, details := []string{}, ""
			for _, problem := range Check(spec) {
				got = append(got, problem.Path+": "+problem.Summary)
				details += problem.Detail
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(details, test.detail) {
				t.Errorf("details: %s", details)
			}
		})
	}
}
