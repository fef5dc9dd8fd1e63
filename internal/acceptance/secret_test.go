package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// Nothing secret is in the state, the plan, the most detailed log, or a container's command line: the
// login key, a token of the environment, the one-time secrets of a copy.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	key, err := os.ReadFile(env["SPARK_SSH_PRIVATE_KEY_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	const token, apiKey = "0123456789abcdef-ray-token", "sk-0123456789abcdef"
	secrets := map[string]string{"the login key": strings.Split(string(key), "\n")[1], "Ray's token": token, "vLLM's key": apiKey}

	log := filepath.Join(t.TempDir(), "trace")
	env["TF_LOG"], env["TF_LOG_PATH"] = "TRACE", log
	declared := config{
		cluster:    fmt.Sprintf(`env = { RAY_AUTH_MODE = "token", RAY_AUTH_TOKEN = sensitive(%q) }`, token),
		deployment: fmt.Sprintf(`env = { VLLM_API_KEY = sensitive(%q) }`, apiKey),
	}
	ws := clitest.New(t, declared.in(w), env)
	plan := ws.Drifted()
	ws.ApplyPlanned()
	ws.Empty()

	texts := map[string]string{"the text of the plan": plan.Text(), "the log": read(t, log)}
	for address, change := range plan.Changes {
		delete(change.After, "env") // Terraform stores what the user wrote; everything that we add is masked.
		texts["the plan of "+address] = fmt.Sprint(change.After)
	}
	for _, host := range w.fleet.Hosts() {
		for _, container := range host.Containers() {
			texts["the command of "+container.Name] = strings.Join(container.Spec.Command, " ")
			texts["the labels of "+container.Name] = fmt.Sprint(container.Spec.Labels)
			texts["the log of "+container.Name] = container.Logs
		}
	}
	for where, text := range texts {
		if text == "" && !strings.HasPrefix(where, "the log of") {
			t.Errorf("%s is empty", where)
		}
		for what, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s shows %s: …%s…", where, what, text[max(0, at-200):min(len(text), at+len(secret)+20)])
			}
		}
	}
	if state := read(t, filepath.Join(ws.Dir, "terraform.tfstate")); strings.Contains(state, secrets["the login key"]) {
		t.Error("the state shows the login key")
	}
	ws.Destroy()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
