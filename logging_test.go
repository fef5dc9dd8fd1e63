package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuiet(t *testing.T) {
	off := map[string]string{"TF_LOG_SDK": "off", "TF_LOG_SDK_PROTO": "off", "TF_LOG_SDK_FRAMEWORK": "off", "TF_LOG_PROVIDER": "off"}
	for name, test := range map[string]struct{ environment, want map[string]string }{
		"nobody asks for a log":         {map[string]string{}, off},
		"a log of Terraform's core":     {map[string]string{"TF_LOG_CORE": "debug"}, off},
		"a log of all":                  {map[string]string{"TF_LOG": "info"}, map[string]string{}},
		"a log of the providers":        {map[string]string{"TF_LOG_PROVIDER": "trace"}, map[string]string{}},
		"a level for the libraries set": {map[string]string{"TF_LOG_SDK": "warn"}, map[string]string{"TF_LOG_SDK_PROTO": "off", "TF_LOG_SDK_FRAMEWORK": "off", "TF_LOG_PROVIDER": "off"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := map[string]string{}
			get := func(name string) string { return test.environment[name] }
			if err := quiet(get, func(name, value string) error { set[name] = value; return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, set); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
		})
	}
}
