package weights

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func TestLocation(t *testing.T) {
	hub := Place{
		Folder: "/home/spark/.cache/huggingface/hub/models--Qwen--Qwen3-8B", Below: "snapshots/" + commit,
		ServePath: "/home/spark/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/" + commit,
	}
	tests := map[string]struct {
		source    Source
		dir, home string
		want      Place
		attribute string // of the problem
		says      string
	}{
		"the folder itself":      {Source{Path: "/models"}, "/models/", "", Place{Folder: "/models", ServePath: "/models"}, "", ""},
		"below":                  {Source{Path: "/models/a/../tiny/"}, "/models", "", Place{Folder: "/models/tiny", ServePath: "/models/tiny"}, "", ""},
		"below the root":         {Source{Path: "/models"}, "/", "", Place{Folder: "/models", ServePath: "/models"}, "", ""},
		"below by home":          {Source{Path: "/home/spark/m/tiny"}, "~/m", "/home/spark", Place{Folder: "/home/spark/m/tiny", ServePath: "/home/spark/m/tiny"}, "", ""},
		"both by home":           {Source{Path: "~/m/tiny"}, "~/m", "/home/spark", Place{Folder: "/home/spark/m/tiny", ServePath: "/home/spark/m/tiny"}, "", ""},
		"home unknown, both":     {Source{Path: "~/m/tiny"}, "~/m", "", Place{Folder: "~/m/tiny", ServePath: "~/m/tiny"}, "", ""},
		"home unknown, one":      {Source{Path: "/data/tiny"}, "~/m", "", Place{Folder: "/data/tiny", ServePath: "/data/tiny"}, "", ""},
		"repo":                   {Source{Repo: "Qwen/Qwen3-8B", Revision: commit}, "~/.cache/huggingface", "/home/spark", hub, "", ""},
		"bare repo":              {Source{Repo: "gpt2", Revision: commit}, "/hf", "", Place{Folder: "/hf/hub/models--gpt2", Below: "snapshots/" + commit, ServePath: "/hf/hub/models--gpt2/snapshots/" + commit}, "", ""},
		"beside":                 {Source{Path: "/models2/tiny"}, "/models", "", Place{}, "path", "see only /models"},
		"above":                  {Source{Path: "/models/../etc"}, "/models", "", Place{}, "path", "/etc is not below weights_dir"},
		"home unknown, outside":  {Source{Path: "~/other"}, "~/m", "", Place{}, "path", "not below"},
		"climbs out of the home": {Source{Path: "~/../x"}, "~/m", "/home/spark", Place{}, "path", "/home/x is not below"},
		"relative":               {Source{Path: "tiny"}, "/models", "", Place{}, "path", "not absolute"},
		"relative weights_dir":   {Source{Path: "/models"}, "models", "", Place{}, "weights_dir", "not absolute"},
		"a branch":               {Source{Repo: "Qwen/Qwen3-8B", Revision: "main"}, "/m", "", Place{}, "revision", "git ls-remote https://huggingface.co/Qwen/Qwen3-8B"},
		"an address":             {Source{Repo: "https://huggingface.co/a/b", Revision: commit}, "/m", "", Place{}, "repo", "not the name"},
		"climbs out of the hub":  {Source{Repo: "../x", Revision: commit}, "/m", "", Place{}, "repo", "not the name"},
		"both":                   {Source{Path: "/m/x", Repo: "a/b", Revision: commit}, "/m", "", Place{}, "repo", "both"},
		"neither":                {Source{}, "/m", "", Place{}, "path", "neither"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Location(test.source, test.dir, test.home)
			if test.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			var problem *Problem
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem", err)
			}
			if problem.Attribute != test.attribute || !strings.Contains(problem.Error(), test.says) {
				t.Errorf("got %q: %s", problem.Attribute, problem)
			}
		})
	}
}

func TestSame(t *testing.T) {
	if err := Same(map[string]Place{"a": {ServePath: "/m"}, "b": {ServePath: "/m"}}); err != nil {
		t.Error(err)
	}
	err := Same(map[string]Place{"10.1.230.11": {ServePath: "/home/a/m"}, "10.1.230.12": {ServePath: "/home/b/m"}})
	if err == nil || !strings.Contains(err.Error(), "/home/a/m on 10.1.230.11 and /home/b/m on 10.1.230.12") {
		t.Errorf("got %v", err)
	}
}
