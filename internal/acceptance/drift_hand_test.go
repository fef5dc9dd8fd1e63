package acceptance

// handScenarios are containers that somebody ran again in ways that only the simulated hosts offer.
func handScenarios() []scenario {
	const ended = `
		vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
		vllm_deployment.tiny: $a.host: server was started for another session of the cluster
	`
	return []scenario{
		{
			name: "image changed by hand", faults: []fault{{"ray-image", b}},
			drift: `ray_cluster.pair: $b.name: image is registry.example/by-hand:1, should be $image` + ended,
			leaves: `
				ray_cluster.pair nodes/$b.host/image: registry.example/by-hand:1 -> $image
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		{
			name: "Ray offers fewer GPUs than the node has", faults: []fault{{"ray-without-gpus", b}},
			drift: `
				ray_cluster.pair: $b.name: Ray sees 0 of 1 GPUs
				ray_cluster.pair: $b.name: command changed by hand (without --num-gpus=1, with --num-gpus=0)
			` + ended,
			leaves: `
				ray_cluster.pair gpu_total: 1 -> 2
				ray_cluster.pair nodes/$b.host/gpu_count: 0 -> 1
				ray_cluster.pair nodes/$b.host/command: …--num-gpus=0… -> …--num-gpus=1…
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
		{
			name: "worker run by its management address", faults: []fault{{"ray-management", b}},
			drift: `
				ray_cluster.pair: $b.name: Ray node address $b.host, should be $b.fabric
				ray_cluster.pair: $b.name: command changed by hand (without --node-ip-address=$b.fabric, with --node-ip-address=$b.host)
				ray_cluster.pair: $b.name: VLLM_HOST_IP is $b.host, which is not what this node needs now
			` + ended,
			leaves: `
				ray_cluster.pair nodes/$b.host/address: $b.host -> $b.fabric
				ray_cluster.pair nodes/$b.host/command: …--node-ip-address=$b.host… -> …--node-ip-address=$b.fabric…
				ray_cluster.pair nodes/$b.host/env/VLLM_HOST_IP: $b.host -> null
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
			` + serverRestart + serverEnded,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
	}
}
