# shellcheck shell=bash
# The outer engine: the machine's, or one of our own that leaves no trace on the machine's network.

engine_answers() { outer version --format '{{.Server.Version}}' >/dev/null 2>&1; }

own_engine_pid() {
  local pid
  pid=$(cat "$OWN_RUN/docker.pid" 2>/dev/null) || return 1
  grep -q dockerd "/proc/$pid/cmdline" 2>/dev/null && echo "$pid" # a zombie has no command line
}

own_engine_ended() { ! own_engine_pid; }

# orphans: processes of our own engine and of its containers, which outlive a dockerd that was killed. An id that is not 64
# hexadecimal digits would match processes of others.
orphans() {
  local id pid
  for id in "$OWN_DATA"/containers/*; do
    id=${id##*/}
    [[ $id =~ ^[0-9a-f]{64}$ ]] || continue
    grep -l "/$id" /proc/[0-9]*/cgroup 2>/dev/null | cut -d/ -f3 || true
  done
  for pid in $(pgrep -f -- "$OWN_RUN/exec/"); do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) != containerd* ]] || echo "$pid"
  done
}

# clean_own_run: after a dockerd that is gone, be it that it was killed.
clean_own_run() {
  local mount pids
  pids=$(orphans)
  # shellcheck disable=SC2086 # ids
  [[ -z $pids ]] || kill -9 $pids 2>/dev/null || true
  while read -r mount; do umount -l "$mount" || true; done < <(awk -v r="$OWN_RUN/" -v d="$OWN_DATA" \
    'index($2, r) == 1 || $2 == d || index($2, d "/") == 1 {print $2}' /proc/mounts | LC_ALL=C sort -r)
  rm -rf "$OWN_RUN"
}

# without_files COMMAND...: becomes the command, with no open file but the first three.
without_files() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    ((fd <= 2)) || eval "exec $fd>&-"
  done
  exec "$@"
}

start_engine() {
  if [[ -d $OWN_RUN ]] && ((EUID == 0)) && own_engine_ended; then clean_own_run; fi
  if engine_answers; then return; fi
  ((EUID == 0)) || die "no Docker engine answers, and starting one takes root: run as root, or start the machine's engine"
  mkdir -p "$OWN_RUN" "$OWN_DATA"
  # Nothing of ours is routed or translated: two closed bridges are all that the nodes need, so the machine's
  # iptables, ip_forward and default bridge stay as they are. It outlives us, so it gets none of our open files: a lock of
  # a caller (flock FILE lab/up) would be held as long as the lab is up.
  without_files setsid dockerd --host "unix://$OWN_SOCKET" --pidfile "$OWN_RUN/docker.pid" --exec-root "$OWN_RUN/exec" \
    --data-root "$OWN_DATA" --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false \
    --ip-forward=false --ip-masq=false </dev/null >"$LAB_HOME/engine.log" 2>&1 &
  wait_for 30 "own dockerd does not answer, see $LAB_HOME/engine.log" engine_answers
  say "own Docker engine $(outer version --format '{{.Server.Version}}')"
}

stop_engine() {
  local pid
  if pid=$(own_engine_pid); then
    kill "$pid"
    wait_for 30 "own dockerd (pid $pid) does not end" own_engine_ended
  fi
  if ((EUID == 0)); then clean_own_run; fi
}
