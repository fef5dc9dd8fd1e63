package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// keyConfig is a deployment with an API key.
func keyConfig(key string, version int) config {
	return config{before: fmt.Sprintf("variable \"key\" {\n  sensitive = true\n  default = %q\n}", key), deployment: fmt.Sprintf("api_key = var.key\n  api_key_version = %d", version)}
}

// The API key guards the server, changes with its version, and is nowhere but in its file.
func TestAPIKey(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	const first, second = "sk-0123456789abcdef-first", "sk-0123456789abcdef-second"
	log := filepath.Join(t.TempDir(), "trace")
	env["TF_LOG"], env["TF_LOG_PATH"] = "TRACE", log
	ws := clitest.New(t, keyConfig(first, 1).in(w), env)
	texts := map[string]string{}
	collect := func(when string, plan clitest.Plan) {
		texts[when+": plan"] = plan.Text()
		for address, change := range plan.Changes {
			texts[when+": plan of "+address] = fmt.Sprint(change.Before, change.After)
		}
		texts[when+": state"] = read(t, filepath.Join(ws.Dir, "terraform.tfstate"))
		for _, host := range w.fleet.Hosts() {
			for _, container := range host.Containers() {
				spec, err := json.Marshal(container.Spec)
				if err != nil {
					t.Fatal(err)
				}
				texts[when+": container "+container.Name+" on "+host.Name()] = string(spec) + container.Logs
			}
		}
	}

	plan := ws.Drifted()
	ws.ApplyPlanned()
	ws.Empty()
	collect("create", plan)
	file := w.fleet.Host(0).Path("/home/" + env["SPARK_SSH_USER"] + "/.config/spark-stack/vllm/tiny/api_key")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || read(t, file) != first {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	w.asks(t, "", http.StatusUnauthorized)
	w.asks(t, first, http.StatusOK)

	// The key alone is not compared; its version is.
	ws.Config(keyConfig(second, 1).in(w))
	ws.Empty()
	ws.Config(keyConfig(second, 2).in(w))
	plan = ws.Drifted()
	if diff := plan.Diff("vllm_deployment.tiny", 1.0, 2.0, "server", "api_key_version"); diff != "" {
		t.Error(diff)
	}
	ws.ApplyPlanned()
	ws.Empty()
	collect("change", plan)
	w.asks(t, first, http.StatusUnauthorized)
	w.asks(t, second, http.StatusOK)

	// A key that is lost on the node is drift.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	plan = ws.Drifted()
	if !strings.Contains(plan.Text(), "the file with the API key is gone (~/.config/spark-stack/vllm/tiny/api_key)") {
		t.Errorf("a lost key is not told: %s", plan.Text())
	}
	ws.Apply()
	ws.Empty()
	w.asks(t, second, http.StatusOK)

	// Without the attributes the server is open, and the file gone.
	ws.Config(config{}.in(w))
	ws.Apply()
	ws.Empty()
	w.asks(t, "", http.StatusOK)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the key stays: %v", err)
	}
	ws.Config(keyConfig(second, 3).in(w))
	ws.Apply()
	ws.Destroy()
	if left := w.leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	texts["the log"] = read(t, log)
	for where, text := range texts {
		for _, secret := range []string{first, second} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s shows the key: …%s…", where, text[max(0, at-200):min(len(text), at+len(secret)+20)])
			}
		}
	}
}

func TestAPIKeyRefused(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	for name, test := range map[string]struct{ lines, key, says string }{
		"without a version": {`api_key = var.key`, "sk-1", "api_key_version"},
		"without a key":     {`api_key_version = 1`, "sk-1", "api_key"},
		"with a line break": {"api_key = var.key\n  api_key_version = 1", "sk-0123456789\n", "Not an API key"},
	} {
		t.Run(name, func(t *testing.T) {
			env := w.env()
			env["TF_VAR_key"] = test.key
			text := clitest.New(t, config{before: "variable \"key\" { sensitive = true }", deployment: test.lines}.in(w), env).PlanFails()
			if !strings.Contains(text, test.says) || strings.Contains(text, "sk-0123456789") {
				t.Errorf("got %s", text)
			}
		})
	}
}

// asks asks the server for its models with a key.
func (w *memory) asks(t testing.TB, key string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8000/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: w.fleet.Host(0).Dial, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != status {
		t.Errorf("with %d letters of key: %d, want %d: %s", len(key), response.StatusCode, status, body)
	}
}
