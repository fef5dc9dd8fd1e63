package image

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   Contents
		fails  bool
	}{
		"whole":        {`{"python": "3.11.2", "ray": "2.60.0", "vllm": "0.32.0", "transformers": "5.0"}`, Contents{"3.11.2", "2.60.0", "0.32.0", "5.0"}, false},
		"with a noise": {"a warning\n{\"python\": \"3.12.1\", \"ray\": \"\"}\n", Contents{Python: "3.12.1"}, false},
		"empty":        {"", Contents{}, true},
		"no version":   {"{}", Contents{}, true},
		"an error":     {"Traceback (most recent call last):", Contents{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.output)
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestHasTokens(t *testing.T) {
	for version, want := range map[string]bool{
		"2.60.0": true, "2.52.0": true, "2.52": true, "3.0.0": true, "2.51.1": false, "2.9.3": false, "1.99": false, "": false, "nightly": false, "3.x": false,
	} {
		if got := (Contents{Ray: version}).HasTokens(); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestForeign(t *testing.T) {
	baked := map[string]string{"PATH": "/usr/bin", "VLLM_HOST_IP": "10.0.0.1", "NCCL_IB_GID_INDEX": "3", "NCCL_IB_HCA": "", "GLOO_SOCKET_IFNAME": "eth9"}
	got := Foreign(baked, map[string]string{"VLLM_HOST_IP": "192.168.200.12"})
	if want := []string{"GLOO_SOCKET_IFNAME=eth9", "NCCL_IB_GID_INDEX=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The program is Python that any version in use can read.
func TestProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; the lab's tests run it in the images")
	}
	output, err := exec.CommandContext(t.Context(), python, Command()[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if contents, err := Parse(string(output)); err != nil || !strings.HasPrefix(contents.Python, "3.") {
		t.Errorf("%+v, %v", contents, err)
	}
}
