#!/bin/bash
# In the builder: starts (or stops) an engine whose image store is the seed.
set -euo pipefail
if [[ ${1:-} == stop ]]; then
  docker ps -aq | xargs -r docker rm -f >/dev/null
  docker image prune -f >/dev/null
  pkill -x dockerd || true
  for _ in $(seq 100); do pgrep -x dockerd >/dev/null || exit 0; sleep 0.1; done
  echo "the builder's dockerd does not end" >&2
  exit 1
fi
/usr/lib/lab/cgroups
mkdir -p /store/seed/docker /build/empty
# It builds on the host's network, so it must not have one of its own.
dockerd --data-root /store/seed/docker --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false \
  --ip-forward=false --ip-masq=false >/var/log/dockerd.log 2>&1 &
