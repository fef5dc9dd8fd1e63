package acceptance

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// The data source tells what is on a machine and takes nothing over: no state of a node, no container
// engine, no change there.
func TestNodeSource(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	text := func(settings string) string {
		return substitute(w, `data "spark_node" "b" {
  host = "$b.host"
  `+settings+`
}
output "name" { value = data.spark_node.b.name }
output "reachable" { value = data.spark_node.b.reachable }
output "facts" {
  value = {
    machine = data.spark_node.b.machine, fabric = data.spark_node.b.fabric_address, management = data.spark_node.b.management_address
    os = data.spark_node.b.os, kernel = data.spark_node.b.kernel, architecture = data.spark_node.b.architecture, login = data.spark_node.b.login
    driver = data.spark_node.b.driver, gpus = data.spark_node.b.gpus[*].name, memory = data.spark_node.b.memory.free
    addresses = { for one in coalesce(data.spark_node.b.interfaces, []) : one.name => one.addresses }
    macs = compact(coalesce(data.spark_node.b.interfaces, [])[*].mac), rdma = data.spark_node.b.rdma_devices[*].interface
    ssh = contains(data.spark_node.b.listening_ports, 22), findings = data.spark_node.b.findings
  }
}`)
	}
	ws := clitest.New(t, text(""), w.env())
	w.fleet.Host(b).EngineDown(true)
	unchanged := watch(t, w)
	ws.Apply()
	ws.Empty()
	unchanged()
	want := fmt.Sprintf(`{"machine":"4c:bb:47:00:01:0c","fabric":%q,"management":%q,"os":"Ubuntu 24.04.3 LTS","kernel":"6.14.0-1013-nvidia","architecture":"arm64","login":"aurora",
		"driver":"580.95.05","gpus":["NVIDIA GB10"],"memory":118111600640,"addresses":{"lo":["127.0.0.1/32"],"enP7s7":["%s/24"],"enp1s0f0np0":["%s/24"]},
		"macs":["4c:bb:47:00:00:0c","4c:bb:47:00:01:0c"],"rdma":["enp1s0f0np0"],"ssh":true,"findings":[]}`,
		w.nodes()[b].Fabric, w.nodes()[b].Host, w.nodes()[b].Host, w.nodes()[b].Fabric)
	var wanted, got any
	for text, into := range map[string]*any{want: &wanted, ws.Run("output", "-json", "facts").Stdout: &got} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}

	w.fleet.Host(b).StopSSH()
	s := stage{w: w, ws: ws}
	s.says(t, "plan", ws.PlanFails(), []string{"Error: Unable to look at $b.host with data.spark_node.b"})
	ws.Config(substitute(w, "data \"spark_node\" \"b\" {\n  host = \"$b.host\"\n  unreachable = \"keep\"\n}\noutput \"reachable\" { value = data.spark_node.b.reachable }\noutput \"name\" { value = data.spark_node.b.name }"))
	s.says(t, "plan", clitest.Unwrap(ws.Drifted().Text()), []string{"Warning: Host $b.host does not answer", "reachable = true -> false", `name = "aurora-2" -> null`})
}
