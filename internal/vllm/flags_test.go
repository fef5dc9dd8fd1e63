package vllm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

func TestUnknownFlags(t *testing.T) {
	known := Flags{Names: []string{"--max-model-len", "--enable-prefix-caching", "--structured-outputs-config", "--no-enable-log-stats"}}
	for text, want := range map[string][]string{
		"--max-model-len 5 --max_model_len=5 --max-model 5":  nil,
		"--no-enable-prefix-caching --no-enable-log-stats":   nil,
		"--structured-outputs-config.backend xgrammar -tp 2": nil,
		"--swap-space 4 --swap-space=4 value":                {"--swap-space"},
		"--max-model-length 5":                               {"--max-model-length"},
		"--no-max-x --":                                      {"--no-max-x"},
	} {
		if diff := cmp.Diff(want, known.unknown(strings.Fields(text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestParseFlags(t *testing.T) {
	help := parseHelp("usage: vllm serve\n  --max-model-len MAX_MODEL_LEN\n  --enable_x, --no-enable-x\n see --structured-outputs-config.backend and --max-model-len.\n")
	if diff := cmp.Diff([]string{"--enable-x", "--max-model-len", "--no-enable-x", "--structured-outputs-config.backend"}, help); diff != "" {
		t.Error(diff)
	}
	var many []string
	for i := range fewest {
		many = append(many, fmt.Sprintf(`"--flag-%d"`, i))
	}
	whole := "[" + strings.Join(many, ",") + "]"
	for name, test := range map[string]struct {
		result engine.ExecResult
		ok     bool
	}{
		"whole":            {engine.ExecResult{Stdout: whole}, true},
		"too few":          {engine.ExecResult{Stdout: `["--a"]`}, false},
		"no JSON":          {engine.ExecResult{Stdout: "Traceback"}, false},
		"ended by a fault": {engine.ExecResult{Stdout: whole, ExitCode: 1}, false},
	} {
		if _, ok := parseFlags(test.result); ok != test.ok {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// What nobody can be asked about is not judged; what is known is not asked again.
func TestCheckFlagsAsksNobody(t *testing.T) {
	spec := deployment()
	spec.Args = []string{"--swap-space", "4"}
	if _, err := CheckFlags(t.Context(), spec, both(head()), Flags{}); err != nil {
		t.Errorf("no container: %v", err)
	}
	names := parseHelp(strings.Join(ServeCommand(spec), " "))
	known, err := CheckFlags(t.Context(), spec, both(head().onRay()), Flags{Image: imageID, Names: names})
	if err != nil || known.Image != imageID {
		t.Errorf("known: %v, %v", known, err)
	}
}

func TestFlagAdvice(t *testing.T) {
	var err error = &FlagError{Host: "10.1.230.180", Image: image, Flags: []string{"--swap-space"}}
	var advises interface{ Advice() string }
	if !errors.As(err, &advises) || !strings.Contains(advises.Advice(), "--swap-space: vLLM 0.18 dropped") || strings.Contains(advises.Advice(), "--help=all") {
		t.Errorf("got %v", advises)
	}
}
