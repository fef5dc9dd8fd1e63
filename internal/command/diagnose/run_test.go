package diagnose

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const famous = "(autoscaler +12s) Error: No available node types can fulfill resource request {'node:192.168.200.12': 0.001, 'GPU': 1.0}. Add suitable node types\n"

// guide is the page that documents the command.
const guide = "../../../templates/guides/diagnose.md.tmpl"

func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// example is a fenced block of the guide.
func example(t *testing.T, after string) []byte {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), after)
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(rest)
	if !found || block == nil {
		t.Fatalf("the guide has no JSON after %q", after)
	}
	return []byte(block[1])
}

func TestRun(t *testing.T) {
	bad := file(t, "bad.log", []byte("HF_TOKEN=hf_abcdefghijklmnop\n"+famous))
	good := file(t, "good.log", []byte("INFO all is well\n"))
	noisy := file(t, "noisy.log", []byte("WARNING Tensor parallel size (2) exceeds available GPUs (1).\n"))
	secret := file(t, "secret.log", []byte("ERROR No space left on device token=hf_abcdefghijklmnop\n"))
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(famous))
	_ = writer.Close()
	zipped := file(t, "bad.log.gz", packed.Bytes())
	evidence := file(t, "evidence.json", example(t, "## Evidence"))
	typo := file(t, "typo.json", []byte(`{"nods": {}}`))

	for name, test := range map[string]struct {
		args   []string
		in     string
		code   int
		says   []string // on standard output
		errors []string // on standard error
	}{
		"a cause":           {[]string{bad}, "", 3, []string{"Cause (row 1, placement)", "on the node 192.168.200.12", bad + ":2: "}, nil},
		"with evidence":     {[]string{bad, "-evidence", evidence}, "", 3, []string{"knows its nodes as 10.1.230.180 and 192.168.200.13", "192.168.200.12 (10.1.230.180)"}, nil},
		"evidence alone":    {[]string{"-evidence", evidence}, "", 3, []string{"Ray knows a node as 10.1.230.180"}, nil},
		"packed":            {[]string{zipped}, "", 3, []string{"row 1"}, nil},
		"standard input":    {[]string{"-"}, famous, 3, []string{"stdin:1: "}, nil},
		"of a node":         {[]string{"spark-a=-"}, famous, 3, []string{"Cause on spark-a (row 1"}, nil},
		"nothing":           {[]string{good}, "", 0, []string{"No cause found in 1 line of 1 log."}, nil},
		"harmless":          {[]string{noisy}, "", 0, []string{"No cause found", "Harmless", "local GPUs first"}, nil},
		"a secret":          {[]string{secret}, "", 3, []string{"token=(hidden)"}, nil},
		"no such file":      {[]string{good + "x"}, "", 1, nil, []string{"good.logx"}},
		"one of two unread": {[]string{bad, good + "x"}, "", 1, []string{"row 1"}, []string{"good.logx"}},
		"no file":           {nil, "", 1, nil, []string{"no log was named", "Usage:"}},
		"unknown option":    {[]string{"-nope", bad}, "", 1, nil, []string{"-nope", "Usage:"}},
		"help":              {[]string{"-h"}, "", 0, []string{"Usage:", "Exit codes"}, nil},
		"typo in evidence":  {[]string{bad, "-evidence", typo}, "", 1, nil, []string{`"nods" is no field`}},
		"no evidence":       {[]string{bad, "-evidence", typo + "x"}, "", 1, nil, []string{"typo.jsonx"}},
		"the catalogue":     {[]string{"-catalogue"}, "", 0, []string{"| 1 | `No available node types"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			code := Run(t.Context(), test.args, strings.NewReader(test.in), &out, &problems)
			if code != test.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, test.code, &out, &problems)
			}
			for _, part := range test.says {
				if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.TrimSpace(part)) {
					t.Errorf("%q is not in:\n%s", part, &out)
				}
			}
			for _, part := range test.errors {
				if !strings.Contains(problems.String(), part) {
					t.Errorf("%q is not in:\n%s", part, &problems)
				}
			}
			if strings.Contains(out.String()+problems.String(), "hf_abc") {
				t.Error("a secret is shown")
			}
			if test.code == 0 && problems.Len() > 0 {
				t.Errorf("errors: %s", &problems)
			}
		})
	}
}

// The guide shows what -json writes for the famous line.
func TestJSON(t *testing.T) {
	var out, problems bytes.Buffer
	code := Run(t.Context(), []string{"-", "-json"}, strings.NewReader("WARNING Tensor parallel size (2) exceeds available GPUs (1).\n"+famous), &out, &problems)
	if code != causesFound || problems.Len() > 0 {
		t.Fatalf("code %d: %s", code, &problems)
	}
	var got, want any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(example(t, "## For programs"), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if code := Run(t.Context(), []string{"no-such-file", "-json"}, nil, &out, &problems); code != cannotRead || !strings.Contains(out.String(), `"errors": [`) || !strings.Contains(out.String(), "no-such-file") {
		t.Errorf("code %d: %s", code, &out)
	}
}

func TestCatalogueIsATable(t *testing.T) {
	for line := range strings.Lines(catalogue()) {
		if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 5 {
			t.Errorf("not four cells: %s", line)
		}
	}
}
