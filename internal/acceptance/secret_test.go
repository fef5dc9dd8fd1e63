package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// Nothing secret is in the state, the plan, the most detailed log, or what docker inspect shows: the
// login key, nor a key in env, which is refused without being repeated.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	key, err := os.ReadFile(env["SPARK_SSH_PRIVATE_KEY_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	const apiKey = "sk-0123456789abcdef"
	secrets := map[string]string{"the login key": strings.Split(string(key), "\n")[1], "vLLM's key": apiKey}

	log := filepath.Join(t.TempDir(), "trace")
	env["TF_LOG"], env["TF_LOG_PATH"] = "TRACE", log
	env["TF_VAR_key"] = apiKey // Terraform shows the lines of a configuration itself
	refused := clitest.New(t, config{deployment: `env = { VLLM_API_KEY = var.key }`}.in(w)+"variable \"key\" { sensitive = true }\n", env)
	refusal := refused.PlanFails()
	if !strings.Contains(refusal, "VLLM_API_KEY does not belong in env") {
		t.Errorf("a secret in env is not refused: %s", refusal)
	}
	ws := clitest.New(t, config{}.in(w), env)
	plan := ws.Drifted()
	ws.ApplyPlanned()
	ws.Empty()

	texts := map[string]string{"the text of the plan": plan.Text(), "the refusal": refusal, "the log": read(t, log)}
	for address, change := range plan.Changes {
		texts["the plan of "+address] = fmt.Sprint(change.After)
	}
	texts["the state"] = read(t, filepath.Join(ws.Dir, "terraform.tfstate"))
	for _, host := range w.fleet.Hosts() {
		for _, container := range host.Containers() {
			texts["the environment of "+container.Name] = fmt.Sprint(container.Spec.Env)
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

// A variable whose name merely sounds like a secret is compared and shown like any other.
func TestVariableThatSoundsSecret(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	ws := clitest.New(t, config{cluster: `env = { TOKENIZERS_PARALLELISM = "false" }`}.in(w), w.env())
	ws.Apply()
	worker := w.fleet.Host(1)
	name := worker.Containers()[0].Name
	worker.RerunContainer(name, func(spec *hosttest.Spec) { spec.Env["TOKENIZERS_PARALLELISM"] = "true" })
	plan := ws.Drifted()
	if diff := plan.Diff("ray_cluster.pair", "true", "false", "nodes", worker.Address(), "env", "TOKENIZERS_PARALLELISM"); diff != "" {
		t.Error(diff)
	}
	ws.Apply()
	ws.Empty()
}
