//go:build lab

package acceptance

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// Bad input and broken nodes with a real sshd and a real engine: exit 1 with the cause, nothing changed.
func TestLabBadInput(t *testing.T) {
	w := newLab(t, true)
	other := filepath.Join(t.TempDir(), "other_key")
	makeKey(t, other)
	cases := []struct {
		name   string
		faults []string // arguments of lab/fault, each
		edit   func(*config)
		env    map[string]string
		says   []string
	}{
		{name: "unknown host", edit: func(c *config) { c.host = map[int]string{b: `"aurora-9.invalid"`} },
			says: []string{"Error: Unable to plan spark_node aurora-9.invalid", "with spark_node.b, on main.tf line"}},
		{name: "closed port", edit: func(c *config) { c.node = map[int]string{b: "port = 1"} },
			says: []string{"Error: Unable to plan spark_node $b.host", "with spark_node.b, on main.tf line", "refused"}},
		{name: "wrong key", env: map[string]string{"SPARK_SSH_PRIVATE_KEY_FILE": other, "SSH_AUTH_SOCK": ""},
			says: []string{"Error: Unable to plan spark_node $b.host", "with spark_node.b, on main.tf line", "$user"}},
		{name: "wrong user", edit: func(c *config) { c.node = map[int]string{b: `user = "nobody"`} },
			says: []string{"Error: Unable to plan spark_node $b.host", "with spark_node.b, on main.tf line", "nobody"}},
		{name: "changed host key", faults: []string{"host-key-changed"},
			says: []string{"Error: Unable to plan spark_node $b.host", "with spark_node.b, on main.tf line", "SHA256:"}},
		{name: "engine down", faults: []string{"engine-down"},
			says: []string{"Error: Unable to plan spark_node $b.host", "with spark_node.b, on main.tf line", "systemctl start docker"}},
		{name: "GPU more than there is", edit: func(c *config) { c.node = map[int]string{b: "gpu_count = 2"} },
			says: []string{"Error: Host $b.name ($b.host): 1 of 2 GPUs present", "with spark_node.b, on main.tf line"}},
		{name: "model folder missing", edit: func(c *config) { c.model = `{ path = "$weights_dir/other" }` },
			says: []string{"Error: Unable to plan vllm_deployment $deployment", "with vllm_deployment.tiny, on main.tf line", "Model folder $weights_dir/other", "does not exist"}},
		{name: "image missing", edit: func(c *config) { c.image = "spark-lab/none:1" },
			says: []string{"Error: Unable to plan ray_cluster $cluster", "with ray_cluster.pair, on main.tf line", "does not have the image", "Pull or load spark-lab/none:1"}},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			declared := config{}
			if one.edit != nil {
				one.edit(&declared)
			}
			env := w.env()
			for name, value := range one.env {
				env[name] = value
			}
			s := stage{w: w, ws: clitest.New(t, declared.in(w), env), config: declared}
			for _, name := range one.faults {
				w.fault(t, name, b)
				defer w.heal(t)
			}
			s.says(t, "plan", s.ws.PlanFails(), one.says)
		})
	}
	t.Run("port taken", func(t *testing.T) {
		for port, says := range map[string]string{"6379": "Error: Unable to plan ray_cluster $cluster", "8000": "Error: Unable to plan vllm_deployment $deployment"} {
			w.run(t, nil, "fault", "port-taken", port, "1")
			s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env())}
			s.says(t, "plan", s.ws.PlanFails(), []string{says, port})
			w.heal(t)
		}
	})
	if left := w.containers(t); len(left) > 0 {
		t.Errorf("failed plans made %v", left)
	}
}

// makeKey writes a key that no node knows.
func makeKey(t testing.TB, path string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}
