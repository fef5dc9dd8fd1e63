# shellcheck shell=bash
# Common ground of the scripts. Sourced, never run. The working folder is the repository's root from here on.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
# A terraform that scripts/terraform has built serves where the machine has none.
PATH=$PATH:$ROOT/build/bin

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# tool NAME ARGS...: a pinned tool of tools/go.mod.
tool() { go tool -modfile="$ROOT/tools/go.mod" "$@"; }

# lab_packages: the packages that have tests with the build tag lab.
lab_packages() { grep -rl --include='*_test.go' '^//go:build lab$' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|'; }

# at_least WANTED HAVE: is version HAVE not older than WANTED?
at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# use_mirror: terraform takes the provider from build/mirror, whatever the user's own settings are, and asks nobody for updates.
use_mirror() {
  export TF_CLI_CONFIG_FILE=$ROOT/build/terraform.rc TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
  if [[ ! -t 1 ]]; then
    local command
    for command in init validate plan apply destroy; do export "TF_CLI_ARGS_$command=-no-color"; done
  fi
}
