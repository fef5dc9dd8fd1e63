package main

import (
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	tests := map[string]struct {
		in, want string
		failed   int
	}{
		"nothing": {"", "0 passed, 0 failed, 0 skipped\n", 0},
		"passed output is dropped": {
			`{"Action":"output","Package":"p","Test":"T","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`, "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n", 0,
		},
		"failed output is kept, the package counts no second time": {
			`{"Action":"output","Package":"p","Test":"T","Output":"want 1\n"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"skip","Package":"p","Test":"U"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, "want 1\nFAIL\tp\t0.1s\n0 passed, 1 failed, 1 skipped\n", 1,
		},
		"a package that does not build": {
			`{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p"}
`, "undefined: x\nFAIL\tp [build failed]\n0 passed, 1 failed, 0 skipped\n", 1,
		},
		"a panic outside a test": {
			`{"Action":"output","Package":"p","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`, "panic: boom\n0 passed, 1 failed, 0 skipped\n", 1,
		},
		"other lines": {"go: downloading x\n", "go: downloading x\n0 passed, 0 failed, 0 skipped\n", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			failed, err := summarize(strings.NewReader(test.in), &out)
			if err != nil || failed != test.failed {
				t.Errorf("got %d, %v; want %d failed", failed, err, test.failed)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}
