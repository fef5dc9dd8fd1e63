# shellcheck shell=bash
# Faults of a node as a machine: addresses, reachability, sshd, power.

moved_address() { echo "$FABRIC.$((21 + $1))"; }

set_fabric_address() { # NODE-NUMBER ADDRESS
  inside "$1" sh -c 'ip -4 addr flush dev "$1" && ip addr add "$2/24" dev "$1" && /usr/lib/lab/gids' sh "$FABRIC_IF" "$2"
}
fabric_address_now() {
  inside "$1" ip -o -4 addr show dev "$FABRIC_IF" | awk '{sub("/.*", "", $4); print $4; exit}'
}

fault_fabric_address() { # [NODE=2]: the fabric address moves by 10, the GIDs follow
  local i; i=$(node_index "${1:-2}")
  set_fabric_address "$i" "$(moved_address "$i")"
  echo "$(node_name "$i"): fabric address is now $(moved_address "$i"), was $(node_fabric "$i")"
}

fault_fabric_down() { # [NODE=2]: the fabric interface is down, as with a pulled cable
  local i; i=$(node_index "${1:-2}")
  inside "$i" ip link set "$FABRIC_IF" down
  echo "$(node_name "$i"): $FABRIC_IF is down"
}

fault_unreachable() { # [NODE=2]: the node is off, without a shutdown
  local i; i=$(node_index "${1:-2}")
  if running "$(node_box "$i")"; then
    outer kill -s USR1 "$(node_box "$i")" >/dev/null
    wait_for 20 "$(node_name "$i") does not end" stopped "$(node_box "$i")"
  fi
  echo "$(node_name "$i"): off"
}

fault_reboot() { # [NODE=2]: the node restarts; what it runs without a restart policy stays stopped
  local i; i=$(node_index "${1:-2}")
  outer restart "$(node_box "$i")" >/dev/null
  await_services "$i"
  echo "$(node_name "$i"): restarted, containers without a restart policy have ended"
}

fault_sshd_stopped() { # [NODE=2]: nobody listens on port 22, open sessions end
  local i; i=$(node_index "${1:-2}")
  inside "$i" sh -c 'pkill -x sshd || true'
  echo "$(node_name "$i"): sshd is stopped"
}

fault_host_key_changed() { # [NODE=2]: sshd shows keys that known_hosts does not know
  local i; i=$(node_index "${1:-2}")
  inside "$i" sh -c 'if mkdir /etc/lab/host-keys 2>/dev/null; then
      mv /etc/ssh/ssh_host_* /etc/lab/host-keys/; pkill -xo sshd; sleep 0.2; /usr/lib/lab/init sshd; fi'
  echo "$(node_name "$i"): new host keys"
}

fault_port_taken() { # PORT [NODE=1]: a program that is not ours listens on the port
  local port=${1:-} i
  [[ $port =~ ^[0-9]+$ ]] || die "usage: lab/fault port-taken PORT [NODE]"
  i=$(node_index "${2:-1}")
  # shellcheck disable=SC2016 # expands in the node
  inside "$i" sh -c 'if ! [ -e /run/lab-port-$1 ]; then
      setsid nc -lk "$1" </dev/null >/dev/null 2>&1 & echo $! >/run/lab-port-$1; sleep 0.2; kill -0 $!; fi' sh "$port" ||
    die "$(node_name "$i"): port $port is in use already"
  echo "$(node_name "$i"): port $port is taken by nc"
}

heal_network() { # NODE-NUMBER
  local i=$1
  running "$(node_box "$i")" || { outer start "$(node_box "$i")" >/dev/null; await_services "$i"; }
  inside "$i" sh -c 'ip link set "$1" up' sh "$FABRIC_IF"
  [[ $(fabric_address_now "$i") == "$(node_fabric "$i")" ]] || set_fabric_address "$i" "$(node_fabric "$i")"
  # shellcheck disable=SC2016 # expands in the node
  inside "$i" sh -c 'for t in iptables ip6tables; do
      for c in INPUT OUTPUT; do $t -P $c ACCEPT; $t -F $c; done; $t -F DOCKER-USER && $t -A DOCKER-USER -j RETURN; done
    for d; do tc qdisc del dev "$d" root; done
    for f in /run/lab-port-*; do [ -e "$f" ] && kill "$(cat "$f")"; rm -f "$f"; done' \
    sh "$FABRIC_IF" "$MGMT_IF" 2>/dev/null || true
  inside "$i" sh -c 'if [ -d /etc/lab/host-keys ]; then rm -f /etc/ssh/ssh_host_*; mv /etc/lab/host-keys/* /etc/ssh/
      rmdir /etc/lab/host-keys; pkill -xo sshd; sleep 0.2; fi; pgrep -x sshd >/dev/null || /usr/lib/lab/init sshd'
}
