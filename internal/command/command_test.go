package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"help":           {[]string{"help"}, 0, "diagnose", ""},
		"unknown":        {[]string{"diagnoze"}, 1, "", `"diagnoze" is no command`},
		"one of them":    {[]string{"diagnose", "-"}, 3, "row 67", ""},
		"its own errors": {[]string{"diagnose"}, 1, "", "no log was named"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			code := Run(t.Context(), test.args, Streams{In: strings.NewReader("No space left on device\n"), Out: &out, Err: &problems})
			if code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(problems.String(), test.err) {
				t.Errorf("code %d, out %q, err %q", code, &out, &problems)
			}
		})
	}
	for name, one := range All() {
		if one.Summary == "" || one.Run == nil {
			t.Errorf("%s: %+v", name, one)
		}
	}
}
