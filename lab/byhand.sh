# shellcheck shell=bash
# Ray and vLLM over the first two nodes by hand, in the form in which the product runs them: what lab/test serves with.
# Arguments that differ from those for real Sparks are few: an image, a number of CPUs, a small object store.

GCS_PORT=6379
HAND_LABELS=(--label io.spark-stack.spark.name=hand)

# hand_args IMAGE NUMBER: options of `docker run` that both kinds of container share on node NUMBER.
hand_args() {
  ARGS=(-d --network host --gpus all --shm-size 2g --ulimit memlock=-1 --cap-add IPC_LOCK --device /dev/infiniband
    -v "$MODEL_PATH:$MODEL_PATH:ro" -v spark-ray-tmp:/tmp/ray -e VLLM_HOST_IP="$(node_fabric "$2")"
    -e GLOO_SOCKET_IFNAME="$FABRIC_IF" -e VLLM_RPC_BASE_PATH=/tmp/ray "${HAND_LABELS[@]}")
}

# hand_ray IMAGE: a cluster over nodes 1 and 2.
hand_ray() {
  local image=$1 head ARGS common
  head=$(node_fabric 1):$GCS_PORT
  common=(--num-gpus=1 --num-cpus=2 --object-store-memory=200000000 --disable-usage-stats)
  local label=io.spark-stack.spark
  hand_args "$image" 1
  inner 1 run "${ARGS[@]}" --ipc shareable --name ray-hand --label $label.resource=ray_cluster --label $label.role=head \
    "$image" ray start --block --head --node-ip-address="$(node_fabric 1)" --port=$GCS_PORT --include-dashboard=false \
    "${common[@]}" >/dev/null
  hand_args "$image" 2
  inner 2 run "${ARGS[@]}" --ipc shareable --name ray-hand --label $label.resource=ray_cluster --label $label.role=worker \
    "$image" ray start --block --address="$head" --node-ip-address="$(node_fabric 2)" "${common[@]}" >/dev/null
}

# hand_vllm [ENV=VALUE...]: serves the model over that cluster, from a container of its own beside the head's.
hand_vllm() {
  local ARGS e
  hand_args "$VLLM_IMAGE" 1
  for e; do ARGS+=(-e "$e"); done
  inner 1 run "${ARGS[@]}" --ipc container:ray-hand --pid container:ray-hand --name vllm-hand \
    --label io.spark-stack.spark.resource=vllm_deployment --label io.spark-stack.spark.role=server \
    -e RAY_ADDRESS="$(node_fabric 1):$GCS_PORT" "$VLLM_IMAGE" \
    vllm serve "$MODEL_PATH" --served-model-name tiny --port 8000 --max-model-len 512 --enforce-eager \
    --tensor-parallel-size 2 --distributed-executor-backend ray >/dev/null
}

# alive_nodes NUMBER CONTAINER: addresses of the alive Ray nodes, asked for in that container.
alive_nodes() {
  inner "$1" exec "$2" python3 -c "
from ray._raylet import GcsClient
nodes = GcsClient(address='$(node_fabric 1):$GCS_PORT').get_all_node_info(timeout=5).values()
print(*sorted(n.node_manager_address for n in nodes if n.state == 0))"
}

# complete NUMBER: one completion of the server on that node.
complete() {
  inside "$1" curl -sS --fail-with-body --max-time 60 "http://127.0.0.1:8000/v1/completions" -H 'content-type: application/json' \
    -d '{"model": "tiny", "prompt": "hello spark", "max_tokens": 8, "temperature": 0, "ignore_eos": true}'
}

# hand_copy_model: what the product would do over the fabric.
hand_copy_model() {
  inside 1 tar -C "${MODEL_PATH%/*}" -c "${MODEL_PATH##*/}" |
    inside 2 sh -c "mkdir -p ${MODEL_PATH%/*} && tar -C ${MODEL_PATH%/*} -x && chown -R 1000:1000 ${MODEL_PATH%/*}"
}
