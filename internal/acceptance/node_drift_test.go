package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// What a single node can do to a plan, beyond the scenarios of the whole.
func TestNode(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	s := stage{w: w, config: config{nodesOnly: true}, within: 20 * time.Second}
	s.ws = clitest.New(t, s.config.in(w), w.env())
	s.ws.Apply()
	s.ws.Empty()
	playStories(t, s, []story{
		{"ignored address", ignoredAddress},
		{"ignored GPU", ignoredGPU},
		{"ignored silence", ignoredSilence},
		{"one node may be silent", oneMaySleep},
		{"another machine", anotherMachine},
		{"helper stays", helperStays},
	})
	s.destroyed(t)
}

// ignoredAddress: it is in observed, and in no drift, plan or warning; until it is not ignored any more.
func ignoredAddress(t *testing.T, s stage) {
	s.w.fault(t, "fabric-address", b)
	s.with(t, func(c *config) { c.node[b] = `ignore_drift = ["fabric_address"]` })
	plan := s.ws.Drifted()
	s.compare(t, "planned values", `spark_node.b ignore_drift: null -> ["fabric_address"]`, plan.Leaves())
	s.ws.ApplyPlanned()
	s.ws.Empty()
	if accepted, seen := s.stored(t, "spark_node.b", "fabric_address"), s.stored(t, "spark_node.b", "observed", "fabric_address"); accepted != s.w.nodes()[b].Fabric || seen != s.w.nodes()[b].Moved {
		t.Errorf("accepted %s, observed %s", accepted, seen)
	}
	s.with(t, func(*config) {})
	plan = s.ws.Drifted()
	s.compare(t, "planned values", `
		spark_node.b ignore_drift: ["fabric_address"] -> null
		spark_node.b fabric_address: $b.fabric -> $b.moved
	`, plan.Leaves())
	s.back(t)
}

// stored is a value in the state, by the address and the path of its attribute.
func (s stage) stored(t *testing.T, address string, path ...string) string {
	t.Helper()
	var document struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string         `json:"address"`
					Values  map[string]any `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(s.ws.Run("show", "-json").Stdout), &document); err != nil {
		t.Fatal(err)
	}
	for _, one := range document.Values.Root.Resources {
		if one.Address != address {
			continue
		}
		var value any = one.Values
		for _, step := range path {
			object, _ := value.(map[string]any)
			value = object[step]
		}
		return fmt.Sprint(value)
	}
	t.Fatalf("the state has no %s", address)
	return ""
}

// ignoredGPU: a lost one stops nothing; it is still seen.
func ignoredGPU(t *testing.T, s stage) {
	s.with(t, func(c *config) { c.node[b] = `ignore_drift = ["gpu_count"]` })
	s.ws.Apply()
	s.w.fault(t, "gpu-lost", b)
	plan := s.ws.Empty()
	if strings.Contains(plan.Text(), "Warning: Host") {
		t.Errorf("an ignored kind warns: %s", plan.Text())
	}
	s.ws.Apply("-refresh-only")
	if got := s.stored(t, "spark_node.b", "observed", "gpu_count"); got != "0" {
		t.Errorf("observed.gpu_count is %s", got)
	}
	// The other kinds count as ever.
	s.w.fault(t, "fabric-address", b)
	plan = s.ws.Drifted()
	s.compare(t, "drift lines", `spark_node.b: $b.name: fabric address is $b.moved, expected $b.fabric`, plan.Lines())
	s.compare(t, "planned values", `spark_node.b fabric_address: $b.fabric -> $b.moved`, plan.Leaves())
	s.back(t)
}

// ignoredSilence: a node that is switched off at night.
func ignoredSilence(t *testing.T, s stage) {
	s.with(t, func(c *config) {
		c.node[b] = "ignore_drift = [\"reachable\"]\n  unreachable = \"keep\""
	})
	s.ws.Apply()
	s.w.fault(t, "sshd-stopped", b)
	plan := s.ws.Empty()
	s.says(t, "plan", clitest.Unwrap(plan.Text()), []string{"Warning: Host $b.host does not answer with spark_node.b"})
	s.w.heal(t)
	s.ws.Empty()
	s.back(t)
}

// oneMaySleep: unreachable = "keep" on one node, and "error" on one of a provider that keeps.
func oneMaySleep(t *testing.T, s stage) {
	s.with(t, func(c *config) { c.node[b] = `unreachable = "keep"` })
	s.ws.Apply()
	s.w.fault(t, "sshd-stopped", b)
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", `spark_node.b: $b.name: does not answer; values below are the last known ones`, plan.Lines())
	s.compare(t, "planned values", `spark_node.b observed/reachable: false -> true`, plan.Leaves())
	s.w.heal(t)
	s.w.fault(t, "sshd-stopped", a)
	s.says(t, "plan", s.ws.PlanFails(), []string{"Error: Unable to read spark_node $a.host with spark_node.a", `unreachable = "keep"`})
	s.w.heal(t)
	s.with(t, func(c *config) { c.node[b], c.provider = `unreachable = "error"`, `unreachable = "keep"` })
	s.ws.Apply()
	s.w.fault(t, "sshd-stopped", b)
	s.says(t, "plan", s.ws.PlanFails(), []string{"Error: Unable to read spark_node $b.host with spark_node.b"})
	s.back(t)
}

// anotherMachine: a name that leads to a wrong machine is drift that apply stops at, before it follows
// anything of it; an exchange on purpose is accepted by -replace.
func anotherMachine(t *testing.T, s stage) {
	w, _ := s.w.(*memory)
	w.fleet.Host(b).ExchangeMachine()
	s.w.fault(t, "fabric-address", b)
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", `spark_node.b: $b.name: answers in place of the accepted machine (network card 4c:bb:47:01:01:0c, expected 4c:bb:47:00:01:0c)`, plan.Lines())
	s.compare(t, "planned values", `
		spark_node.b observed/fabric_address: $b.moved -> $b.fabric
		spark_node.b observed/machine: 4c:bb:47:01:01:0c -> 4c:bb:47:00:01:0c
	`, plan.Leaves())
	text := []string{"Host $b.name ($b.host): another machine answers with spark_node.b", "terraform apply -replace="}
	s.says(t, "plan", clitest.Unwrap(plan.Text()), append(text, "Warning: Host", "Applying this plan will stop at this node"))
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), append(text, "Error: Host"))
	unchanged()
	s.actions(t, s.ws.Drifted("-replace=spark_node.b"), "spark_node.b delete create")
	s.ws.ApplyPlanned()
	s.ws.Empty()
	if got := s.stored(t, "spark_node.b", "machine"); got != "4c:bb:47:01:01:0c" {
		t.Errorf("the accepted machine is %s", got)
	}
	w.fleet.Host(b).RestoreMachine()
	s.w.heal(t)
	s.ws.Apply("-replace=spark_node.b")
	s.back(t)
}

// helperStays: destroy takes our helper off a node, unless keep_agent leaves it there.
func helperStays(t *testing.T, s stage) {
	w, _ := s.w.(*memory)
	helper := w.fleet.Host(b).Path("~/.cache/spark-stack/spark-agent-0123456789ab")
	for line, stays := range map[string]bool{"keep_agent = true": true, "keep_agent = false": false, "": false} {
		s.with(t, func(c *config) { c.node[b] = line })
		s.ws.Apply()
		if err := os.MkdirAll(filepath.Dir(helper), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(helper, []byte("helper"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.ws.Config(config{nodesOnly: true, count: 1}.in(s.w))
		s.actions(t, s.ws.Drifted(), "spark_node.b delete")
		s.ws.ApplyPlanned()
		if _, err := os.Stat(helper); (err == nil) != stays {
			t.Errorf("%q: %v", line, err)
		}
	}
	s.back(t)
}
