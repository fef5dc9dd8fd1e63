package acceptance

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// What happens to weights that keep their names and sizes.
func TestWeightsOfTheSameSize(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 20 * time.Second}
	s.ws.Apply()
	s.ws.Empty()
	shard := path.Join(w.modelPath(), hosttest.ShardName(2))
	read := func(node int) []byte {
		t.Helper()
		content, err := os.ReadFile(w.fleet.Hosts()[node].Path(shard))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	other := func(content []byte) []byte {
		changed := slices.Clone(content)
		changed[len(changed)-1] ^= 0xff
		return changed
	}
	accepted := read(a)

	// A touch is no drift, and is remembered.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(w.fleet.Hosts()[a].Path(shard), later, later); err != nil {
		t.Fatal(err)
	}
	s.ws.Empty()

	// Another content on one node is drift that apply repairs from the other.
	w.fleet.Hosts()[b].WriteFile(shard, other(accepted))
	plan := s.ws.Drifted()
	if lines := strings.Join(plan.Lines(), "\n"); !strings.Contains(lines, hosttest.ShardName(2)+" has other content than accepted, of the same size") {
		t.Errorf("drift lines:\n%s", lines)
	}
	s.ws.ApplyPlanned()
	s.ws.Empty()
	if !bytes.Equal(read(b), accepted) {
		t.Error("the file is not repaired")
	}

	// A model that was renewed on one node is accepted when the configuration says so.
	renewed := other(accepted)
	w.fleet.Hosts()[b].WriteFile(shard, renewed)
	s.ws.Config(config{model: `{ path = "$model_path", revision = "second" }`}.in(w))
	plan = s.ws.Drifted()
	s.actions(t, plan, "vllm_deployment.tiny update")
	if route := w.nodes()[b].Host + " -> " + w.nodes()[a].Host + " over "; !strings.Contains(clitest.Unwrap(plan.Text()), route) {
		t.Errorf("%q is not in the plan:\n%s", route, plan.Text())
	}
	s.ws.ApplyPlanned()
	s.ws.Empty()
	if !bytes.Equal(read(a), renewed) || !bytes.Equal(read(b), renewed) {
		t.Error("the renewed model was not brought to the other node")
	}

	// One that was renewed on every node is followed by a new server.
	for _, host := range w.fleet.Hosts() {
		host.WriteFile(shard, accepted)
	}
	s.actions(t, s.ws.Drifted(), "vllm_deployment.tiny update")
	s.ws.ApplyPlanned()
	s.ws.Config(config{deployment: `verify = "full"`, model: `{ path = "$model_path", revision = "second" }`}.in(w))
	s.ws.Apply()
	s.ws.Empty()
	if !bytes.Equal(read(a), accepted) {
		t.Error("the model was replaced by the one that was accepted before")
	}
}
