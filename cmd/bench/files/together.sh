#!/usr/bin/env bash
# together.sh record|check: the checks of checks.sh in one connection a node, both nodes at once: as good as it gets by hand.
set -euo pipefail
mode=$1
form='{{.Id}} {{.State.Status}} {{.State.StartedAt}} {{.Image}} {{json .Config.Cmd}} {{json .Config.Env}} {{json .HostConfig.Binds}}'

# commands NODE: all checks of one node, for one remote shell.
commands() {
  cat <<SH
set -e
ip -o -4 addr show dev $INTERFACE | awk '{print \$4}'
nvidia-smi -L
docker image inspect -f '{{.Id}}' $IMAGE
find -L $MODEL -type f -printf '%P %s %T@\n' | sort
SH
  if [[ $1 == "$HEAD" ]]; then
    cat <<SH
docker inspect -f '$form' ray-$NAME vllm-$NAME
docker exec -i ray-$NAME python3 - <<'PY'
$(<"$FILES/nodes.py")
PY
curl -fsS -m 5 -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$SERVE_PORT/health
SH
  else
    echo "docker inspect -f '$form' ray-$NAME"
  fi
}

mkdir -p "$WANT"
running=()
for node in "$HEAD" "$WORKER"; do
  commands "$node" | ssh -F "$SSH_CONFIG" "$node" bash -s >"$WANT/$node.$mode" &
  running+=($!)
done
for one in "${running[@]}"; do wait "$one"; done
[[ $mode == record ]] && exit 0
for node in "$HEAD" "$WORKER"; do
  cmp "$WANT/$node.record" "$WANT/$node.check" || exit 2
done
