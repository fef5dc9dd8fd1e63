package acceptance

// clusterScenarios are what people do to Ray's containers.
func clusterScenarios() []scenario {
	return []scenario{
		{
			name: "Ray container removed", faults: []fault{{"ray-removed", b}},
			drift: `
				ray_cluster.pair: $b.name: container is missing
				? vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
				~ vllm_deployment.tiny: $a.host: server does not answer /health
			`,
			leaves: `
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/address: null -> $b.fabric
				ray_cluster.pair nodes/$b.host/command: null -> ray start --block --address=$a.fabric:6379 --node-ip-address=$b.fabric --num-gpus=1 --num-cpus=2 --object-store-memory=1073741824
				ray_cluster.pair nodes/$b.host/container: missing -> running
				ray_cluster.pair nodes/$b.host/container_id: null -> (known after apply)
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair nodes/$b.host/image: null -> $image
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		{
			name: "Ray container stopped", faults: []fault{{"ray-stopped", b}},
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
			name: "environment changed by hand", faults: []fault{{"ray-env", b}},
			drift: `
				ray_cluster.pair: $b.name: environment changed by hand (NCCL_DEBUG)
				? vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
				~ vllm_deployment.tiny: $a.host: server does not answer /health
				vllm_deployment.tiny: $a.host: server was started for another session of the cluster
			`,
			leaves: `
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair nodes/$b.host/env/NCCL_DEBUG: INFO -> null
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		famousFault(),
	}
}

// famousFault is the head known to Ray by its management address, after a `ray start` without
// --node-ip-address.
func famousFault() scenario {
	return scenario{
		name: "head registered by its management address", faults: []fault{{"ray-head-management", a}},
		drift: `
			ray_cluster.pair: $a.name: Ray node address $a.host, should be $a.fabric
			ray_cluster.pair: $a.name: command changed by hand (without --node-ip-address=$a.fabric)
			? vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
			~ vllm_deployment.tiny: $a.host: server does not answer /health
			vllm_deployment.tiny: $a.host: server was started for another session of the cluster
		`,
		leaves: `
			ray_cluster.pair address: $a.host:6379 -> $a.fabric:6379
			ray_cluster.pair nodes/$a.host/address: $a.host -> $a.fabric
			ray_cluster.pair nodes/$a.host/command: …… -> …--node-ip-address=$a.fabric…
			ray_cluster.pair nodes/$a.host/container_id: <id> -> (known after apply)
			ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
			ray_cluster.pair session: <id> -> (known after apply)
		` + serverRestart + serverEnded,
		replaced: "$a.name/$ray $a.name/$vllm $b.name/$ray",
	}
}
