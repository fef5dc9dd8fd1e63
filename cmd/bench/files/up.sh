#!/usr/bin/env bash
# up.sh [ray]: the same cluster and server, or the cluster alone, by hand, as run_cluster.sh and the playbooks do it: ssh, docker run, `ray status` until
# both nodes are there, `docker exec` of vllm serve, curl of /health, one completion. It knows the identity addresses, sleeps
# nowhere but between two questions (2 s, as the launchers in use do), and checks nothing else.
set -euo pipefail
on() { ssh -F "$SSH_CONFIG" "$@"; }

# last_words: the ends of both containers' logs, for whoever wonders.
last_words() {
  local node
  for node in "$HEAD" "$WORKER"; do
    echo "$node: $(on "$node" "docker ps -a --filter name=$HAND --format '{{.Status}}'; docker logs --tail 5 $HAND 2>&1")"
  done
}

# until_ok SECONDS WHAT COMMAND...: asks every 2 s.
until_ok() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "gave up waiting for $what" >&2; last_words >&2; exit 1; }
    sleep 2
  done
}

# ray_container ADDRESS RAY-START-ARGUMENTS: the line for one node.
ray_container() {
  echo "docker run -d --name $HAND --network host --ipc host --shm-size 10g --gpus all --device /dev/infiniband --cap-add IPC_LOCK" \
    "--ulimit memlock=-1 -v $MODELS:$MODELS:ro -v /tmp/ray -e VLLM_HOST_IP=$1 -e GLOO_SOCKET_IFNAME=$INTERFACE" \
    "-e RAY_memory_monitor_refresh_ms=0 -e RAY_num_prestart_python_workers=0 -e HF_HUB_OFFLINE=1 -e VLLM_NO_USAGE_STATS=1" \
    "-e RAY_ADDRESS=$HEAD_ADDRESS:$GCS_PORT $IMAGE ray start --block --node-ip-address=$1 --num-gpus=1 --num-cpus=2" \
    "--object-store-memory=1073741824 --disable-usage-stats $2"
}
members() { [[ $(on "$HEAD" docker exec "$HAND" ray status 2>/dev/null | grep -c '^ 1 node_') -eq 2 ]]; }
healthy() { on "$HEAD" curl -fsS -m 5 -o /dev/null "http://127.0.0.1:$SERVE_PORT/health"; }

on "$HEAD" "$(ray_container "$HEAD_ADDRESS" "--head --port=$GCS_PORT --include-dashboard=false")" >/dev/null
until_ok 120 'Ray on the head' on "$HEAD" docker exec "$HAND" ray status
on "$WORKER" "$(ray_container "$WORKER_ADDRESS" "--address=$HEAD_ADDRESS:$GCS_PORT")" >/dev/null
until_ok 60 'two members' members
[[ ${1:-} != ray ]] || exit 0
on "$HEAD" "docker exec -d $HAND sh -c 'exec vllm serve $MODEL --served-model-name $NAME --port $SERVE_PORT --tensor-parallel-size 2 \
  --distributed-executor-backend ray --enforce-eager --max-model-len 512 >/tmp/vllm.log 2>&1'"
until_ok 300 "/health (docker exec $HAND tail /tmp/vllm.log on $HEAD)" healthy
on "$HEAD" "curl -fsS -m 60 -o /dev/null http://127.0.0.1:$SERVE_PORT/v1/completions -H 'content-type: application/json' \
  -d '{\"model\": \"$NAME\", \"prompt\": \"Hello\", \"max_tokens\": 1}'"
