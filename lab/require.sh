# shellcheck shell=bash
# What the lab needs of the machine.

# require: the programs; on Debian and Ubuntu root gets what is missing by apt.
require() {
  local missing=() program package
  local -A packages=([docker]=docker.io [ssh-keygen]=openssh-client [ip]=iproute2 [flock]=util-linux)
  if ((EUID == 0)); then
    packages+=([debootstrap]='debootstrap debian-archive-keyring')
    engine_answers || packages+=([dockerd]=docker.io)
  fi
  for program in "${!packages[@]}"; do command -v "$program" >/dev/null || missing+=("$program"); done
  ((${#missing[@]})) || return 0
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    package=$(for program in "${missing[@]}"; do printf '%s\n' "${packages[$program]}"; done | sort -u | paste -sd ' ')
    say "apt-get install $package"
    # shellcheck disable=SC2086 # a list of words
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $package; } \
      >"$LAB_HOME/apt.log" 2>&1 || die "cannot install $package, see $LAB_HOME/apt.log"
    return
  fi
  die "missing on this machine: ${missing[*]}"
}

# overlaps A.B.C ADDRESS/LENGTH: does that network share addresses with A.B.C.0/24?
overlaps() {
  local a b len n
  IFS=. read -r -a a <<<"$1.0"
  IFS=. read -r -a b <<<"${2%/*}"
  len=${2#*/}; [[ $2 == */* ]] || len=32
  n=$((len < 24 ? len : 24))
  local x=$(((a[0] << 24) + (a[1] << 16) + (a[2] << 8))) y=$(((b[0] << 24) + (b[1] << 16) + (${b[2]:-0} << 8)))
  (((x ^ y) >> (32 - n) == 0))
}

# require_free_range A.B.C: no interface holds, and no route other than the widest leads to, the range.
require_free_range() {
  local dev net
  while read -r dev net; do
    [[ $dev == "$BRIDGE"-* ]] && continue
    ((${net#*/} >= 12)) || continue
    if overlaps "$1" "$net"; then
      die "$1.0/24 is in use on this machine: $dev has $net. Choose other ranges by LAB_MGMT_PREFIX and LAB_FABRIC_PREFIX."
    fi
  done < <(
    ip -o -4 addr show | awk '{print $2, $4}'
    ip -4 route show table all | awk '$1 ~ /^[0-9.]+\/[0-9]+$/ {for (i = 1; i < NF; i++) if ($i == "dev") print $(i + 1), $1}'
  )
}
