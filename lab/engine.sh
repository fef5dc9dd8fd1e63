# shellcheck shell=bash
# The outer engine: the machine's, or one of our own that leaves no trace on the machine's network.

engine_answers() { outer version --format '{{.Server.Version}}' >/dev/null 2>&1; }

own_engine_pid() {
  local pid
  pid=$(cat "$OWN_RUN/docker.pid" 2>/dev/null) || return 1
  grep -q dockerd "/proc/$pid/cmdline" 2>/dev/null && echo "$pid" # a zombie has no command line
}

own_engine_ended() { ! own_engine_pid; }

start_engine() {
  [[ -S $OWN_SOCKET ]] && ! own_engine_pid >/dev/null && rm -rf "$OWN_RUN"
  if engine_answers; then return; fi
  ((EUID == 0)) || die "no Docker engine answers, and starting one takes root: run as root, or start the machine's engine"
  mkdir -p "$OWN_RUN" "$OWN_DATA"
  # Nothing of ours is routed or translated: two closed bridges are all that the nodes need, so the machine's
  # iptables, ip_forward and default bridge stay as they are.
  setsid dockerd --host "unix://$OWN_SOCKET" --pidfile "$OWN_RUN/docker.pid" --exec-root "$OWN_RUN/exec" \
    --data-root "$OWN_DATA" --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false \
    --ip-forward=false --ip-masq=false </dev/null >"$LAB_HOME/engine.log" 2>&1 9>&- &
  wait_for 30 "own dockerd does not answer, see $LAB_HOME/engine.log" engine_answers
  say "own Docker engine $(outer version --format '{{.Server.Version}}')"
}

stop_engine() {
  local pid
  if pid=$(own_engine_pid); then
    kill "$pid"
    wait_for 30 "own dockerd (pid $pid) does not end" own_engine_ended
  fi
  # A dockerd that was killed leaves its mounts.
  while read -r m; do umount -l "$m" || true; done < <(awk -v r="$OWN_RUN/" -v d="$OWN_DATA/" \
    'index($2, r) == 1 || index($2, d) == 1 {print $2}' /proc/mounts | LC_ALL=C sort -r)
  rm -rf "$OWN_RUN"
}
