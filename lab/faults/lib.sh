# shellcheck shell=bash
# What the faults share: how they find the product's containers, and how they run one again.

LABEL=io.spark-stack.spark

# boxes RESOURCE [ROLE]: "NODE-NUMBER CONTAINER ROLE" of each such container, on the nodes whose engine answers.
boxes() {
  local i name role
  for i in $(seq "$NODES"); do
    running "$(node_box "$i")" || continue
    while read -r name role; do
      [[ -n $name && (-z ${2:-} || $role == "$2") ]] && echo "$i $name $role"
    done < <(inner "$i" ps -a --filter "label=$LABEL.resource=$1" --format "{{.Names}} {{.Label \"$LABEL.role\"}}" 2>/dev/null)
  done
  return 0
}

# box_on NODE-NUMBER RESOURCE: name of that container; says so and ends when there is none.
box_on() {
  local found
  found=$(boxes "$2" | awk -v i="$1" '$1 == i {print $2; exit}')
  [[ -n $found ]] || die "$(node_name "$1") has no container labelled $LABEL.resource=$2"
  echo "$found"
}

rerun() { local i=$1; shift; inside "$i" python3 - "$@" <"$LAB_DIR/faults/rerun.py"; }

# ray_alive HEAD-NUMBER CONTAINER: addresses of the alive nodes, in order.
ray_alive() {
  inner "$1" exec -i "$2" python3 - <<'PY'
import re
from ray._raylet import GcsClient
words = open("/proc/1/cmdline").read().replace("\0", " ")
port = re.search(r"--port[= ](\d+)", words)
client = GcsClient(address="127.0.0.1:" + (port.group(1) if port else "6379"))
nodes = client.get_all_node_info(timeout=5).values()
print(*sorted(n.node_manager_address for n in nodes if n.state == 0))
PY
}
ray_alive_count_is() { [[ $(ray_alive "$1" "$2" | wc -w) == "$3" ]]; }
