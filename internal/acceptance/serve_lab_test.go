//go:build lab

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// The real vLLM takes the key from the file alone, refuses who has none, and shows it nowhere: not to
// docker inspect or docker logs, not to ps with every process's environment, not in Ray's logs.
func TestLabServeKey(t *testing.T) {
	w := newLab(t, true)
	const key = "sk-lab-0123456789abcdef"
	env := w.env()
	log := filepath.Join(t.TempDir(), "trace")
	env["TF_LOG"], env["TF_LOG_PATH"] = "TRACE", log
	s := stage{w: w, ws: clitest.New(t, keyConfig(key, 1).in(w), env)}
	s.cleanUp(t)
	s.ws.Apply()
	s.ws.Empty()
	code := func(header ...string) string {
		ask := append([]string{"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"}, header...)
		return w.exec(t, a, append([]string{"docker", "exec", "ray-" + labName}, append(ask, "http://127.0.0.1:8000/v1/models")...)...)
	}
	if open, keyed := code(), code("-H", "Authorization: Bearer "+key); open != "401" || keyed != "200" {
		t.Errorf("without the key %s, with it %s", open, keyed)
	}
	texts := map[string]string{"the log": read(t, log), "the state": read(t, filepath.Join(s.ws.Dir, "terraform.tfstate"))}
	for node, one := range w.nodes() {
		texts["processes of "+one.Name] = w.exec(t, node, "sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; ps axeww")
		texts["containers of "+one.Name] = w.exec(t, node, "sh", "-c", "for c in $(docker ps -aq); do docker inspect $c; docker logs $c 2>&1; done")
		texts["Ray's files on "+one.Name] = w.exec(t, node, "docker", "exec", "ray-"+labName, "sh", "-c", "grep -rs "+key+" /tmp/ray /root/.cache || true")
	}
	for where, text := range texts {
		if text == "" && !strings.HasPrefix(where, "Ray's files") {
			t.Errorf("%s: nothing", where)
		}
		if at := strings.Index(text, key); at >= 0 && (!strings.HasPrefix(where, "processes") || !strings.Contains(text[max(0, at-200):at], "grep -rs")) {
			t.Errorf("%s shows the key: …%s…", where, text[max(0, at-200):at])
		}
	}
	s.ws.Destroy()
}
