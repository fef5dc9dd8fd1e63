package acceptance

// nodeScenarios are what happens to a machine.
func nodeScenarios() []scenario {
	return []scenario{
		{
			name: "fabric address of a worker, followed", faults: []fault{{"fabric-address", b}}, returns: true,
			drift: `spark_node.b: $b.name: fabric address is $b.moved, expected $b.fabric`,
			leaves: `
				spark_node.b fabric_address: $b.fabric -> $b.moved
				ray_cluster.pair nodes/$b.host/address: $b.fabric -> $b.moved
				ray_cluster.pair nodes/$b.host/command: …--node-ip-address=$b.fabric… -> …--node-ip-address=$b.moved…
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
				ray_cluster.pair workers/0/fabric_address: $b.fabric -> $b.moved
				vllm_deployment.tiny cluster/nodes/$b.host/address: $b.fabric -> $b.moved
			` + serverRestart,
			says:     []string{"Plan: 0 to add, 3 to change, 0 to destroy."},
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		{
			name: "fabric address of the head, followed", faults: []fault{{"fabric-address", a}}, returns: true,
			drift: `spark_node.a: $a.name: fabric address is $a.moved, expected $a.fabric`,
			leaves: `
				spark_node.a fabric_address: $a.fabric -> $a.moved
				ray_cluster.pair address: $a.fabric:6379 -> $a.moved:6379
				ray_cluster.pair head/fabric_address: $a.fabric -> $a.moved
				ray_cluster.pair nodes/$a.host/address: $a.fabric -> $a.moved
				ray_cluster.pair nodes/$a.host/command: …--node-ip-address=$a.fabric… -> …--node-ip-address=$a.moved…
				ray_cluster.pair nodes/$a.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$b.host/command: …--address=$a.fabric:6379… -> …--address=$a.moved:6379…
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
				vllm_deployment.tiny cluster/address: $a.fabric:6379 -> $a.moved:6379
				vllm_deployment.tiny cluster/nodes/$a.host/address: $a.fabric -> $a.moved
			` + serverRestart,
			replaced: "$a.name/$ray $a.name/$vllm $b.name/$ray",
		},
		{
			name: "GPU lost", faults: []fault{{"gpu-lost", b}},
			drift: `
				spark_node.b: $b.name: 0 GPUs present, expected 1
				ray_cluster.pair: $b.name: Ray sees 0 of 1 GPUs
			`,
			leaves: `
				spark_node.b observed/gpu_count: 0 -> 1
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart,
			says: []string{
				"Warning: Host $b.name ($b.host): 0 of 1 GPUs present with spark_node.b, on main.tf line",
				"accept the loss with gpu_count = 0. Applying this plan will stop at this node with an error and change nothing that depends on it.",
			},
			stops: []string{
				"Error: Host $b.name ($b.host): 0 of 1 GPUs present with spark_node.b, on main.tf line",
				"Nothing that depends on this node was changed.",
			},
		},
		{
			name: "worker rebooted", faults: []fault{{"reboot", b}},
			drift: `
				ray_cluster.pair: $b.name: container is exited (exit code N), should be running
				? vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
				~ vllm_deployment.tiny: $a.host: server does not answer /health
			`,
			leaves: `
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/address: null -> $b.fabric
				ray_cluster.pair nodes/$b.host/container: exited -> running
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		{
			name: "head rebooted", faults: []fault{{"reboot", a}},
			drift: `
				ray_cluster.pair: $a.name: container is exited (exit code N), should be running
				? ray_cluster.pair: $b.name: container is exited (exit code N), should be running
				vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
			`,
			leaves: `
				ray_cluster.pair gpu_total: 0 -> 2
				ray_cluster.pair nodes/$a.host/address: null -> $a.fabric
				ray_cluster.pair nodes/$a.host/container: exited -> running
				ray_cluster.pair nodes/$a.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$a.host/gpu_count: 0 -> 1
				ray_cluster.pair nodes/$b.host/address: null -> $b.fabric
				? ray_cluster.pair nodes/$b.host/container: exited -> running
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair session: <id> -> (known after apply)
				vllm_deployment.tiny server/container: exited -> running
				vllm_deployment.tiny server/healthy: false -> true
			` + serverRestart,
			replaced: "$a.name/$ray $a.name/$vllm $b.name/$ray",
		},
	}
}
