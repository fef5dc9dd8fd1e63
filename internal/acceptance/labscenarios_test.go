//go:build lab

package acceptance

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// byHandImage is the cluster's image with a layer on top, as somebody who tried something has it.
const byHandImage = "registry.example/by-hand:1"

// rerun runs a worker's container again as a person does, with one thing changed.
func (w *lab) rerun(t testing.TB, node int, changes ...string) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(repository, "lab", "faults", "rerun.py"))
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, script, "exec", append([]string{strconv.Itoa(node + 1), "python3", "-", "ray-" + labName}, changes...)...)
}

// handFault breaks what only a person with a shell breaks; false leaves a fault to lab/fault.
func (w *lab) handFault(t testing.TB, name string, node int) bool {
	t.Helper()
	at := w.nodes()[node]
	switch name {
	case "ray-image":
		w.exec(t, node, "sh", "-c", "docker image inspect "+byHandImage+" >/dev/null 2>&1 || docker commit ray-"+labName+" "+byHandImage+" >/dev/null")
		t.Cleanup(func() { w.exec(t, node, "sh", "-c", "docker rmi -f "+byHandImage+" >/dev/null 2>&1 || true") })
		w.again(t, node, func() { w.rerun(t, node, "--image", byHandImage) })
	case "ray-without-gpus":
		w.again(t, node, func() { w.rerun(t, node, "--drop-flag", "num-gpus", "--add-flag", "num-gpus=0") })
	case "ray-without-devices":
		w.again(t, node, func() { w.rerun(t, node, "--drop-devices") })
	case "ray-management":
		w.rerun(t, node, "--drop-flag", "node-ip-address", "--add-flag", "node-ip-address="+at.Host, "--env", "VLLM_HOST_IP="+at.Host)
		w.awaitAlive(t, at.Host, true)
		w.awaitAlive(t, at.Fabric, false)
	case "raylet-frozen":
		w.exec(t, node, "docker", "exec", "ray-"+labName, "pkill", "-STOP", "raylet")
		w.awaitAlive(t, at.Fabric, false)
	default:
		return false
	}
	return true
}

// awaitAlive waits until Ray counts the node with an address as alive, or as dead.
func (w *lab) awaitAlive(t testing.TB, address string, alive bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		is := false
		for _, one := range w.alive(t) {
			is = is || one == address
		}
		if is == alive {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("alive at %s: %v after two minutes", address, is)
		}
	}
}

// labScenarios are those whose faults the simulated hosts do not have.
func labScenarios() []scenario {
	return []scenario{
		{
			name: "raylet frozen in a running container", faults: []fault{{"raylet-frozen", b}},
			drift: "ray_cluster.pair: $b.name: not a member of the cluster at $a.fabric:6379",
			leaves: `
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/address: null -> $b.fabric
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
			`,
			replaced: "$b.name/$ray",
		},
		{
			name: "RDMA devices left out by hand", faults: []fault{{"ray-without-devices", b}},
			drift: "ray_cluster.pair: $b.name: device /dev/infiniband is not passed through",
			leaves: `
				ray_cluster.pair nodes/$b.host/differences: ["device /dev/infiniband is not passed through"] -> []
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
			`,
			replaced: "$b.name/$ray",
		},
		{
			name: "address moved and container removed", faults: []fault{{"fabric-address", b}, {"ray-removed", b}}, returns: true,
			drift: `
				spark_node.b: $b.name: fabric address is $b.moved, expected $b.fabric
				ray_cluster.pair: $b.name: container is missing
			`,
			leaves: `
				spark_node.b fabric_address: $b.fabric -> $b.moved
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/address: null -> $b.moved
				ray_cluster.pair nodes/$b.host/command: null -> ray start --block --address=$a.fabric:6379 --node-ip-address=$b.moved --num-gpus=1 --num-cpus=2 --object-store-memory=1073741824
				ray_cluster.pair nodes/$b.host/container: missing -> running
				ray_cluster.pair nodes/$b.host/container_id: null -> (known after apply)
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair nodes/$b.host/image: null -> $image
				ray_cluster.pair session: <id> -> (known after apply)
				ray_cluster.pair workers/0/fabric_address: $b.fabric -> $b.moved
			`,
			replaced: "$b.name/$ray",
		},
	}
}
