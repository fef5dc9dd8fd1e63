# shellcheck shell=bash
# shellcheck disable=SC2034 # many of these are for those who source this
# Common ground of the lab's commands. Sourced, never run.
set -euo pipefail

LAB_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_PREFIX=${SPARK_LAB_NAME:-spark-lab} # of all that the outer engine holds for us: a second lab needs another, and other ranges
LAB_HOME=${SPARK_LAB_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/$LAB_PREFIX}
LAB_RUN=$LAB_HOME/run # belongs to the running lab; removed by lab/down
LAB_STATE=$LAB_RUN/state
LAB_KEY=$LAB_RUN/id_ed25519
LAB_KNOWN_HOSTS=$LAB_RUN/known_hosts
LAB_LABEL=io.spark-stack.lab=$LAB_PREFIX # on containers, networks and the volume: what is removed is found by it
STORE=$LAB_PREFIX-store # volume: seed of the nodes' image stores, and the stores themselves
NODE_PREFIX=aurora
LAB_USER=aurora
RAY_IMAGE=spark-lab/ray:2.60.0
VLLM_IMAGE=spark-lab/vllm:0.32.0
MODEL_PATH=/home/$LAB_USER/models/tiny-qwen3
MGMT_IF=enP7s7
FABRIC_IF=enp1s0f0np0

# The engine that we start ourselves when the machine runs none.
OWN_RUN=/run/$LAB_PREFIX
OWN_SOCKET=$OWN_RUN/docker.sock
OWN_DATA=$LAB_HOME/engine

[[ $LAB_PREFIX =~ ^[a-z]([a-z-]{0,10}[a-z])?$ ]] ||
  { echo "SPARK_LAB_NAME takes up to 12 small letters, with dashes between them, not \"$LAB_PREFIX\"" >&2; exit 1; }

say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# wait_for SECONDS WHAT CMD...: polls until CMD succeeds; every wait in the lab goes through here, so none is endless.
wait_for() {
  local limit=$1 what=$2 end; shift 2
  end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "gave up after ${limit} s: $what"
    sleep 0.2
  done
}

# The engine that holds the nodes: our own, if we started one, else the machine's.
engine_host() {
  if [[ -S $OWN_SOCKET ]]; then echo "unix://$OWN_SOCKET"; else echo "${DOCKER_HOST:-}"; fi
}
outer() {
  local host; host=$(engine_host)
  if [[ -n $host ]]; then docker -H "$host" "$@"; else docker "$@"; fi
}

# listed ps|network|volume [OPTION...]: ids of what is this lab's. All that is in our own engine is; in the machine's, what has
# our label. A name proves nothing.
listed() {
  if [[ -S $OWN_SOCKET ]]; then outer "$@" -q; else outer "$@" -q --filter "label=$LAB_LABEL"; fi
}

# Our own engine leaves the machine's IPv4 forwarding off and would warn of it each time.
unwarned() { "$@" 2> >(grep -v 'IPv4 forwarding is disabled' >&2); }

lab_up_p() { [[ -f $LAB_STATE ]]; }

# What the running lab was started with; its own values win over this shell's environment.
load_state() {
  lab_up_p || die "the lab is not up; start it with lab/up"
  # shellcheck source=/dev/null
  source "$LAB_STATE"
}

node_name()  { echo "$NODE_PREFIX-$1"; }
node_box()   { echo "$LAB_PREFIX-$NODE_PREFIX-$1"; }            # the node's container
node_mgmt()  { echo "$MGMT.$((179 + $1))"; }
node_fabric() { echo "$FABRIC.$((11 + $1))"; }

# node_index NAME|NUMBER -> number, or a sentence that lists the nodes.
node_index() {
  local i=${1#"$NODE_PREFIX"-}
  if [[ $i =~ ^[1-9]$ ]] && ((i <= NODES)); then echo "$i"; return; fi
  die "no node \"$1\": this lab has $(seq -f "$NODE_PREFIX-%g" -s ', ' "$NODES")"
}

inside()  { local i=$1; shift; outer exec -i "$(node_box "$i")" "$@"; }    # root in node i
inner()   { local i=$1; shift; inside "$i" docker "$@"; }                 # node i's own engine
running() { [[ $(outer inspect -f '{{.State.Running}}' "$1" 2>/dev/null) == true ]]; }
stopped() { ! running "$1"; }

# hash_of PATH...: identity of the scripts below lab/ that make something.
hash_of() {
  (cd "$LAB_DIR" && find "$@" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-12
}
