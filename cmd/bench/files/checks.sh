#!/usr/bin/env bash
# checks.sh record|check: the facts behind "nothing has changed", asked one by one over OpenSSH, a connection for each, as such
# scripts do. record stores the answers in $WANT, check compares with them and ends with 2 when one differs.
set -euo pipefail
mode=$1
differs=0

# look NODE NAME COMMAND [FILE]: one check; FILE becomes the command's standard input.
look() {
  local seen
  seen=$(ssh -F "$SSH_CONFIG" "$1" "$3" <"${4:-/dev/null}") || { echo "$1: $2 cannot be read" >&2; exit 1; }
  if [[ $mode == record ]]; then
    printf '%s\n' "$seen" >"$WANT/$1.$2"
  elif [[ $seen != "$(<"$WANT/$1.$2")" ]]; then
    printf '%s: %s differs:\n%s\nshould be\n%s\n' "$1" "$2" "$seen" "$(<"$WANT/$1.$2")" >&2
    differs=2
  fi
}

mkdir -p "$WANT"
form='{{.Id}} {{.State.Status}} {{.State.StartedAt}} {{.Image}} {{json .Config.Cmd}} {{json .Config.Env}} {{json .HostConfig.Binds}}'
for node in "$HEAD" "$WORKER"; do
  look "$node" address "ip -o -4 addr show dev $INTERFACE | awk '{print \$4}'"
  look "$node" gpus 'nvidia-smi -L'
  look "$node" image "docker image inspect -f '{{.Id}}' $IMAGE"
  look "$node" ray "docker inspect -f '$form' ray-$NAME"
  look "$node" weights "find -L $MODEL -type f -printf '%P %s %T@\n' | sort"
done
look "$HEAD" server "docker inspect -f '$form' vllm-$NAME"
look "$HEAD" members "docker exec -i ray-$NAME python3 -" "$FILES/nodes.py"
look "$HEAD" health "curl -fsS -m 5 -o /dev/null -w '%{http_code}' http://127.0.0.1:$SERVE_PORT/health"
exit $differs
