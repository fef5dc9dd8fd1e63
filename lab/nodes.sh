# shellcheck shell=bash
# The nodes and their networks.

BRIDGE=${LAB_PREFIX//-/} # the bridges' names on the machine: sparklab-m, sparklab-f
HOST_MGMT=254 # last number of the machine's own address in the management range
NO_GATEWAY=1 # ... and of the nodes' gateway, which is nobody

# lab_is N HASH: is exactly that lab up, with its nodes running?
lab_is() {
  [[ -f $LAB_STATE ]] || return 1
  (
    # shellcheck source=/dev/null
    source "$LAB_STATE"
    [[ $NODES == "$1" && $STATE_HASH == "$2" ]] || exit 1
    [[ ${LAB_MGMT_PREFIX:-$MGMT} == "$MGMT" && ${LAB_FABRIC_PREFIX:-$FABRIC} == "$FABRIC" ]] || exit 1
    for i in $(seq "$NODES"); do running "$(node_box "$i")" || exit 1; done
  )
}

write_state() {
  printf '%s=%s\n' NODES "$N" STATE_HASH "$HASH" MGMT "$MGMT" FABRIC "$FABRIC" >"$LAB_STATE"
}

create_networks() {
  local driver=(--internal --label "$LAB_LABEL" -o com.docker.network.driver.mtu=9000)
  outer network create "${driver[@]}" --subnet "$MGMT.0/24" --gateway "$MGMT.$HOST_MGMT" \
    -o com.docker.network.bridge.name="$BRIDGE-m" "$LAB_PREFIX-mgmt" >/dev/null
  outer network create "${driver[@]}" --subnet "$FABRIC.0/24" --gateway "$FABRIC.254" \
    -o com.docker.network.bridge.name="$BRIDGE-f" "$LAB_PREFIX-fabric" >/dev/null
}

create_node() {
  local i=$1 box hosts=() j; box=$(node_box "$i")
  for j in $(seq "$N"); do hosts+=(--add-host "$(node_name "$j"):$(node_mgmt "$j")"); done
  mkdir -p "$LAB_RUN"
  [[ -f $LAB_KEY ]] || ssh-keygen -q -t ed25519 -N '' -C "$LAB_USER" -f "$LAB_KEY"
  seed_node "$i"
  # A machine with Docker forwards; in here nothing but its own engine could set that.
  unwarned outer create --sysctl net.ipv4.ip_forward=1 --name "$box" --label "$LAB_LABEL" --hostname "$(node_name "$i")" "${NODE_RIGHTS[@]}" \
    --shm-size 4g --tmpfs /run:exec,mode=755 --stop-timeout 15 "${hosts[@]}" --network "$LAB_PREFIX-mgmt" --ip "$(node_mgmt "$i")" "$NODE_TAG" >/dev/null
  outer network connect --ip "$(node_fabric "$i")" "$LAB_PREFIX-fabric" "$box"
  local etc; etc=$(mktemp -d)
  mkdir "$etc/lab"
  printf '%s=%s\n' STORE_DIR "nodes/$i" SEED_DIR "$NODE_SEED" MGMT_ADDR "$(node_mgmt "$i")" \
    FABRIC_ADDR "$(node_fabric "$i")" MGMT_IF "$MGMT_IF" \
    FABRIC_IF "$FABRIC_IF" TWIN_IF enP2p1s0f0np0 GATEWAY "$MGMT.$NO_GATEWAY" >"$etc/lab/node.env"
  printf '1\n%s\n' "$(node_name "$i")" >"$etc/lab/gpus"
  cp "$LAB_KEY.pub" "$etc/lab/authorized_keys"
  chmod -R a+rX "$etc/lab"
  outer cp "$etc/lab" "$box:/etc/"
  rm -rf "$etc"
  outer start "$box" >/dev/null
}

# await_services NUMBER: engine and sshd of a started node answer.
await_services() {
  local i=$1 name; name=$(node_name "$1")
  running "$(node_box "$i")" || die "$name ended: $(outer logs --tail 5 "$(node_box "$i")" 2>&1)"
  wait_for 60 "the engine of $name does not answer: lab/exec $name tail /var/log/dockerd.log" inner "$i" version
  wait_for 20 "sshd of $name does not run" inside "$i" pgrep -x sshd
}

# note_host_keys NUMBER: into known_hosts, by the management address.
note_host_keys() {
  local key
  while read -r key; do
    echo "$(node_mgmt "$1") ${key% *}"
  done < <(inside "$1" sh -c 'cat /etc/ssh/ssh_host_*.pub') >>"$LAB_KNOWN_HOSTS"
}

# remove_nodes: the running lab, whole or half; the store keeps the seed.
remove_nodes() {
  local leftover
  leftover=$(listed ps -a)
  # shellcheck disable=SC2086 # ids
  [[ -z $leftover ]] || outer rm -f -v $leftover >/dev/null
  for net in $(listed network ls --filter type=custom); do outer network rm "$net" >/dev/null 2>&1 || true; done
  # A network that could not be made whole leaves its bridge.
  if ((EUID == 0)); then for net in m f; do ip link del "$BRIDGE-$net" 2>/dev/null || true; done; fi
  if [[ $(outer images -q "$LAB_PREFIX/node") ]]; then store_do 'rm -rf /store/nodes'; fi
  rm -rf "$LAB_RUN"
}
