package container

import (
	"slices"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for want, command := range map[string][]string{
		`ray start --num-cpus 2 'it'\''s'`:             {"ray", "start", "--num-cpus", "2", "it's"},
		`vllm serve ~/models/x --flag= '' '(a)' '{"b'`: {"vllm", "serve", "~/models/x", "--flag=", "", "(a)", `{"b`},
	} {
		if got := CommandLine(command); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSecretFlag(t *testing.T) {
	for flag, want := range map[string]bool{"--redis-password": true, "--api_key": true, "--hf-token": true, "--num-gpus": false, "token": false, "": false} {
		if got := SecretFlag(flag); got != want {
			t.Errorf("%q: %v", flag, got)
		}
	}
}

func TestEnding(t *testing.T) {
	for _, test := range []struct {
		status string
		code   int
		oom    bool
		want   string
	}{
		{"running", 0, false, ""}, {"created", 1, false, ""}, {"exited", 1, false, " (exit code 1)"},
		{"dead", 137, true, " (exit code 137, killed for lack of memory)"},
	} {
		if got := Ending(test.status, test.code, test.oom); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestEnvDiffers(t *testing.T) {
	got := EnvDiffers(map[string]string{"A": "1", "B": "2", "C": ""}, map[string]string{"A": "1", "B": "3", "D": ""})
	if want := []string{"B", "C", "D"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
