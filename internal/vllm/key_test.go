package vllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

const sesame = "sk-open-sesame"

// keyed is the deployment with an API key.
func keyed() Spec {
	spec := deployment()
	spec.Name, spec.KeyVersion = "qwen3.5_x", 2
	return spec
}

// guard puts an API behind a key; what it lets through without one counts as open.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" && r.Header.Get("Authorization") != "Bearer "+sesame {
			http.Error(w, `{"error": "Unauthorized"}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestStartWithKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.script = []moment{{api: guard(api("qwen", http.StatusOK))}}
		if err := Start(t.Context(), keyed(), NewKey(sesame), both(first), quiet(), nil); err != nil {
			t.Fatal(err)
		}
		const name = "vllm/qwen3_p5__x/api_key"
		if diff := cmp.Diff([]string{"write " + name, "create vllm-qwen3.5_x", "start new"}, first.journal); diff != "" {
			t.Error(diff)
		}
		if first.secrets[name] != sesame {
			t.Errorf("the node has %v", first.secrets)
		}
		made := first.containers[len(first.containers)-1].Spec
		shown, err := json.Marshal(made)
		if err != nil || strings.Contains(string(shown), sesame) {
			t.Errorf("the container shows the key (%v): %s", err, shown)
		}
		mount := engine.Mount{Source: "/home/spark/.config/spark-stack/vllm/qwen3_p5__x", Target: "/run/spark-stack/vllm", ReadOnly: true}
		if !slices.Contains(made.Mounts, mount) || made.Labels[LabelKeyVersion] != "2" {
			t.Errorf("got mounts %v, labels %v", made.Mounts, made.Labels)
		}
		if !slices.Equal(made.Command[:2], []string{"python3", "-c"}) || !slices.Equal(made.Command[3:5], []string{"vllm", "serve"}) {
			t.Errorf("got %q", made.Command)
		}
		if _, err := Stop(t.Context(), keyed(), both(first), nil); err != nil || len(first.secrets) > 0 {
			t.Errorf("after the stop the node has %d keys, %v", len(first.secrets), err)
		}
	})
}

// A server that was given a key and answers without it is no server with a key.
func TestStartFindsOpenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.script = []moment{{log: "api_key " + sesame + "\n", api: api("qwen", http.StatusOK)}}
		err := Start(t.Context(), keyed(), NewKey(sesame), both(first), quiet(), nil)
		var failure *Error
		if !errors.As(err, &failure) || !strings.Contains(failure.Seen, "answers without one") {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(failure.Log, sesame) || !strings.Contains(failure.Log, "(hidden)") {
			t.Errorf("the log of the error is %q", failure.Log)
		}
		if last := first.journal[len(first.journal)-1]; !strings.HasPrefix(last, "remove new") {
			t.Errorf("the open server stays: %s", last)
		}
	})
}

// Who takes api_key out of the configuration leaves no key on the node.
func TestStartRemovesForgottenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.keep(deployment().KeyName(), sesame)
		first.script = []moment{{api: api("qwen", http.StatusOK)}}
		if err := Start(t.Context(), deployment(), Key{}, both(first), quiet(), nil); err != nil || len(first.secrets) > 0 {
			t.Errorf("the node has %d keys, %v", len(first.secrets), err)
		}
	})
}

func TestKeyDrift(t *testing.T) {
	tests := map[string]struct {
		declared, started Spec
		lost              bool
		drift             []string
		version           int64
	}{
		"as declared":     {declared: keyed(), started: keyed(), version: 2},
		"file gone":       {declared: keyed(), started: keyed(), lost: true, version: 2, drift: []string{"the file with the API key is gone (~/.config/spark-stack/vllm/qwen3_p5__x/api_key)"}},
		"started open":    {declared: keyed(), started: func() Spec { s := keyed(); s.KeyVersion = 0; return s }(), drift: []string{"server: nothing is mounted at /run/spark-stack/vllm (want folder /home/spark/.config/spark-stack/vllm/qwen3_p5__x (read-only))", "server was started without the API key"}},
		"started with it": {declared: func() Spec { s := keyed(); s.KeyVersion = 0; return s }(), started: keyed(), version: 2, drift: []string{"server was started with an API key"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := head()
			first.serving(t, test.started, nil)
			if !test.lost {
				first.keep(test.declared.KeyName(), sesame)
			}
			seen, err := LookServer(t.Context(), test.declared, both(first))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.drift, seen.SpecDrift); diff != "" {
				t.Error(diff)
			}
			if seen.KeyVersion != test.version || seen.Command != Want(test.declared).Command {
				t.Errorf("version %d, command %s", seen.KeyVersion, seen.Command)
			}
		})
	}
	seen := Want(keyed())
	seen.KeyVersion = 1
	if why := Decide(Want(keyed()), seen); why != "version of the API key differs" {
		t.Errorf("got %q", why)
	}
}

// Several API servers are several processes, of which one has the key.
func TestKeyWithReplicas(t *testing.T) {
	spec := keyed()
	spec.Args = []string{"-dp", "2"}
	if line := Want(spec).Command; !strings.Contains(line, "--api-server-count 1") {
		t.Errorf("got %s", line)
	}
	spec.Cluster.GPUTotal = 4
	spec.Args = append(spec.Args, "--api-server-count=2")
	problems := Check(spec)
	if len(problems) != 1 || problems[0].Summary != "Several API servers cannot have an API key" {
		t.Errorf("got %v", problems)
	}
}

func TestKey(t *testing.T) {
	for text, ok := range map[string]bool{"sk-1": true, "": false, "a b": false, "a\n": false, "ä": false, strings.Repeat("x", keyMax): true, strings.Repeat("x", keyMax+1): false} {
		why := CheckKey(text)
		if (why == "") != ok || ok == false && len(text) > 2 && strings.Contains(why, text) {
			t.Errorf("%q: %q", text, why)
		}
	}
	for _, shown := range []string{fmt.Sprint(NewKey(sesame)), fmt.Sprintf("%+v %#v", NewKey(sesame), NewKey(sesame)), fmt.Sprintf("%+v", &starter{key: NewKey(sesame)})} {
		if strings.Contains(shown, sesame) {
			t.Error("a key prints itself")
		}
	}
}
