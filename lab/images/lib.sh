# shellcheck shell=bash
# In the builder: makes an image by writing into a running container's file system, then committing it. That spares the
# copy that `docker build` or `docker cp` would make of a site folder of 2 GB.
set -euo pipefail
SITE=usr/local/lib/python3.11/dist-packages

step() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# open_image FROM: sets ROOT, where the container's file system is seen from here.
open_image() {
  BOX=$(docker run -d --network none "$1" sleep 3600)
  ROOT=$(docker inspect -f '{{.GraphDriver.Data.MergedDir}}' "$BOX")
}

# pip_install ARG...: into the image, not into the builder. pip installs to a temporary folder and moves what it got, which
# is a mere rename when that folder is in the image too.
pip_install() {
  local target; target=$(mktemp -d "$ROOT/pip.XXXXXX")
  mkdir "$target/tmp" "$target/site"
  TMPDIR=$target/tmp python3.11 -m pip install -q --no-cache-dir --no-compile --root-user-action=ignore \
    --target "$target/site" "$@"
  if [[ -d $target/site/bin ]]; then cp -a "$target/site/bin/." "$ROOT/usr/local/bin/" && rm -rf "$target/site/bin"; fi
  mkdir -p "$ROOT/$SITE"
  # Not a plain mv: two distributions can share a folder (opentelemetry and its like).
  cp -al "$target/site/." "$ROOT/$SITE/"
  rm -rf "$target"
}

# compile_image: all Python files, so that no start has to.
compile_image() {
  step compile
  python3.11 -m compileall -q -j0 -s "$ROOT" "$ROOT/$SITE" >/dev/null 2>&1 || true
}

# close_image TAG [CHANGE...]
close_image() {
  local tag=$1 changes=() c; shift
  for c; do changes+=(-c "$c"); done
  step commit
  docker commit -m "$tag" "${changes[@]}" "$BOX" "$tag"
  docker rm -f "$BOX" >/dev/null
  step "$tag"
}
