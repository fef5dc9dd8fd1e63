package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// An imported node is as one that was made: the plan that follows is empty.
func TestImportNode(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	delete(env, "SPARK_SSH_USER")
	delete(env, "SPARK_SSH_PORT")
	six := fmt.Sprintf("[::ffff:%s]:%d", w.nodes()[b].Host, w.fleet.Port())
	env["SPARK_SSH_KNOWN_HOSTS_FILE"] = filepath.Join(t.TempDir(), "known_hosts")
	known := fmt.Sprintf("[%s]:%d %s\n%s %s\n", w.nodes()[a].Host, w.fleet.Port(), w.hostKey(t, a), six, w.hostKey(t, b))
	if err := os.WriteFile(env["SPARK_SSH_KNOWN_HOSTS_FILE"], []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	login := substitute(w, "user = \"$user\"\n  port = $port")
	nodes := config{nodesOnly: true, host: map[int]string{b: substitute(w, `"::ffff:$b.host"`)}, node: map[int]string{a: login, b: login}}
	s := stage{w: w, config: nodes, ws: clitest.New(t, nodes.in(w), env)}
	imports := map[string]string{"spark_node.a": substitute(w, "$user@$a.host:$port"), "spark_node.b": substitute(w, "$user@"+six)}
	for address, id := range imports {
		if result := s.ws.Run("import", "-no-color", address, id); result.Exit != 0 {
			t.Fatalf("import: exit %d\n%s", result.Exit, result.Text())
		}
	}
	s.ws.Empty()
	state := s.ws.Run("state", "pull").Stdout
	for _, want := range []string{`"fabric_address": "$a.fabric"`, `"gpu_count": 1`, `"name": "$b.name"`, `"machine": "4c:bb:47:00:01:0b"`, `"drift": []`} {
		if !strings.Contains(state, substitute(w, want)) {
			t.Errorf("the state lacks %s", substitute(w, want))
		}
	}

	// By blocks: nothing to add, change or destroy, and exit code 2 as Terraform has it for imports.
	s.ws.Run("state", "rm", "spark_node.a", "spark_node.b")
	blocks := nodes
	for address, id := range imports {
		blocks.before += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", address, id)
	}
	s.ws.Config(blocks.in(w))
	unchanged := watch(t, w)
	plan := s.ws.Drifted()
	s.actions(t, plan, "")
	s.says(t, "plan", clitest.Unwrap(plan.Text()), []string{"Plan: 2 to import, 0 to add, 0 to change, 0 to destroy."})
	s.ws.ApplyPlanned()
	unchanged()
	s.ws.Empty()

	for id, says := range map[string]string{
		"user@": "is no host name or address", "$a.host:0": "no port number", "-oProxyCommand=x": "is no host name or address",
		"nobody@$a.host:$port": "nobody", "aurora-9.invalid": "aurora-9.invalid",
	} {
		s.ws.Run("state", "rm", "spark_node.a")
		result := s.ws.Run("import", "-no-color", "spark_node.a", substitute(w, id))
		if text := clitest.Unwrap(result.Text()); result.Exit != 1 || !strings.Contains(text, says) {
			t.Errorf("import of %s: exit %d: %s", id, result.Exit, text)
		}
	}
}
