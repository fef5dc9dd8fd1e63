package acceptance

// deploymentScenarios are what happens to the server and to the weights.
func deploymentScenarios() []scenario {
	lost := func(node string) (drift, leaves string) {
		return `vllm_deployment.tiny: ` + node + `: weights incomplete, $files.rest of $files files, $bytes.rest of $bytes bytes`, `
			vllm_deployment.tiny server/container_id: <id> -> (known after apply)
			vllm_deployment.tiny weights/` + node + `/bytes: $bytes.rest -> $bytes
			vllm_deployment.tiny weights/` + node + `/files: $files.rest -> $files
			vllm_deployment.tiny weights/` + node + `/state: incomplete -> complete
		`
	}
	onHead, headLeaves := lost("$a.host")
	onWorker, workerLeaves := lost("$b.host")
	return []scenario{
		{
			name: "vLLM killed", faults: []fault{{"vllm-killed", a}},
			drift: `vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running`,
			leaves: `
				vllm_deployment.tiny server/container: exited -> running
				vllm_deployment.tiny server/container_id: <id> -> (known after apply)
				vllm_deployment.tiny server/healthy: false -> true
			`,
			says:     []string{"Plan: 0 to add, 1 to change, 0 to destroy."},
			replaced: "$a.name/$vllm",
		},
		{
			name: "vLLM removed", faults: []fault{{"vllm-removed", a}},
			drift: `vllm_deployment.tiny: $a.host: server container is missing`,
			leaves: `
				vllm_deployment.tiny server/cluster_session: null -> <id>
				vllm_deployment.tiny server/command: null -> vllm serve $model_path --served-model-name $deployment --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 --distributed-executor-backend ray $serve_args
				vllm_deployment.tiny server/container: missing -> running
				vllm_deployment.tiny server/container_id: null -> (known after apply)
				vllm_deployment.tiny server/healthy: false -> true
				vllm_deployment.tiny server/image: null -> $image
			`,
			replaced: "$a.name/$vllm",
		},
		{name: "weights truncated on a worker", faults: []fault{{"weights-truncated", b}}, drift: onWorker, leaves: workerLeaves, replaced: "$a.name/$vllm"},
		{name: "weights deleted on a worker", faults: []fault{{"weights-deleted", b}}, drift: onWorker, leaves: workerLeaves, replaced: "$a.name/$vllm"},
		{name: "weights truncated on the head", faults: []fault{{"weights-truncated", a}}, drift: onHead, leaves: headLeaves, replaced: "$a.name/$vllm"},
		{name: "weights deleted on the head", faults: []fault{{"weights-deleted", a}}, drift: onHead, leaves: headLeaves, replaced: "$a.name/$vllm"},
		{
			name: "Ray container run again by hand as it was", faults: []fault{{"ray-recreated", b}},
			drift: `
				? vllm_deployment.tiny: $a.host: server container is exited (exit code N), should be running
				~ vllm_deployment.tiny: $a.host: server does not answer /health
				vllm_deployment.tiny: $a.host: server was started for another session of the cluster
			`,
			leaves: `
				vllm_deployment.tiny cluster/session: <id> -> <id>
				vllm_deployment.tiny server/cluster_session: <id> -> <id>
				vllm_deployment.tiny server/container_id: <id> -> (known after apply)
			` + serverEnded,
			replaced: "$a.name/$vllm",
		},
	}
}

// togetherScenarios are several at once.
func togetherScenarios() []scenario {
	return []scenario{
		{
			name: "address of a worker and weights of the head", faults: []fault{{"fabric-address", b}, {"weights-deleted", a}}, returns: true,
			drift: `
				spark_node.b: $b.name: fabric address is $b.moved, expected $b.fabric
				vllm_deployment.tiny: $a.host: weights incomplete, $files.rest of $files files, $bytes.rest of $bytes bytes
			`,
			leaves: `
				spark_node.b fabric_address: $b.fabric -> $b.moved
				ray_cluster.pair nodes/$b.host/address: $b.fabric -> $b.moved
				ray_cluster.pair nodes/$b.host/command: …--node-ip-address=$b.fabric… -> …--node-ip-address=$b.moved…
				ray_cluster.pair nodes/$b.host/container_id: <id> -> (known after apply)
				ray_cluster.pair session: <id> -> (known after apply)
				ray_cluster.pair workers/0/fabric_address: $b.fabric -> $b.moved
				vllm_deployment.tiny cluster/nodes/$b.host/address: $b.fabric -> $b.moved
				vllm_deployment.tiny weights/$a.host/bytes: $bytes.rest -> $bytes
				vllm_deployment.tiny weights/$a.host/files: $files.rest -> $files
				vllm_deployment.tiny weights/$a.host/state: incomplete -> complete
			` + serverRestart,
			replaced: "$a.name/$vllm $b.name/$ray",
		},
	}
}
