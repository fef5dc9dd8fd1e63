# shellcheck shell=bash
# In the builder: makes an image by writing into a running container's file system, then committing it. That spares the
# copy that `docker build` or `docker cp` would make of a site folder of 2 GB.
set -euo pipefail
SITE=usr/local/lib/python3.11/dist-packages

# open_image FROM: sets ROOT, where the container's file system is seen from here.
open_image() {
  BOX=$(docker run -d --network none "$1" sleep 3600)
  ROOT=$(docker inspect -f '{{.GraphDriver.Data.MergedDir}}' "$BOX")
}

# pip_install ARG...: into the image, not into the builder.
pip_install() {
  python3.11 -m pip install -q --no-cache-dir --no-compile --root-user-action=ignore --target "$ROOT/$SITE" "$@" 2>&1 |
    { grep -v 'already exists' || true; }
  if [[ -d $ROOT/$SITE/bin ]]; then cp -a "$ROOT/$SITE/bin/." "$ROOT/usr/local/bin/" && rm -rf "${ROOT:?}/$SITE/bin"; fi
}

# close_image TAG [CHANGE...]: compiles the Python files, so that no start has to, and commits.
close_image() {
  local tag=$1 changes=(); shift
  for c; do changes+=(-c "$c"); done
  python3.11 -m compileall -q -j2 -s "$ROOT" "$ROOT/$SITE" >/dev/null 2>&1 || true
  docker commit -m "$tag" "${changes[@]}" "$BOX" "$tag"
  docker rm -f "$BOX" >/dev/null
}
