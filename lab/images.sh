# shellcheck shell=bash
# Images: the node's lives in the outer engine; those that run on the nodes are built inside a builder node, straight into
# the image store ("seed") that all nodes share, read-only, beneath their own. So nothing is saved, loaded or kept twice.

BUILDER=$LAB_PREFIX-builder
NODE_SEED=/var/lib/lab-seed # where a node sees the seed's layers
NODE_HASH=$(hash_of node)
RAY_HASH=$(hash_of images/{lib,ray}.sh images/ray.Dockerfile images/vllm.lock node/Dockerfile)
VLLM_HASH=$(hash_of images node/Dockerfile)
BASE_TAG=$LAB_PREFIX/base:bookworm
NODE_TAG=$LAB_PREFIX/node:$NODE_HASH
TOOLS_TAG=$LAB_PREFIX/tools:$NODE_HASH
# What a node or the builder must be allowed: all but CAP_SYS_RESOURCE, which a container sandbox often lacks itself.
NODE_RIGHTS=(--cap-add ALL --cap-drop SYS_RESOURCE --security-opt seccomp=unconfined --security-opt apparmor=unconfined
  --device-cgroup-rule 'a *:* rwm' -v "$STORE:/store")

wanted_images() { echo "${LAB_IMAGES:-ray vllm}"; }     # LAB_IMAGES=ray leaves vLLM out
have_image() { outer image inspect "$1" >/dev/null 2>&1; }
lab_hash() { if [[ $(wanted_images) == *vllm* ]]; then echo "$NODE_HASH-$VLLM_HASH"; else echo "$NODE_HASH-$RAY_HASH"; fi; }

# make_store: our volume; another's of the name is not touched.
make_store() {
  outer volume create --label "$LAB_LABEL" "$STORE" >/dev/null
  [[ $(listed volume ls --filter "name=^$STORE\$") ]] ||
    die "the volume $STORE has not the label $LAB_LABEL: remove it (docker volume rm $STORE), or choose another SPARK_LAB_NAME"
}

# store_do SCRIPT [ARG...]: shell in a throw-away container that sees the store.
store_do() {
  local script=$1 image=$NODE_TAG; shift
  make_store
  # A lab that was started from other scripts has another image of ours, which does as well.
  have_image "$image" || image=$(outer images "$LAB_PREFIX/node" --format '{{.Repository}}:{{.Tag}}' | head -n1)
  outer run --rm -i --pull never --network none --label "$LAB_LABEL" -v "$STORE:/store" "$image" bash -euc "$script" store "$@"
}
seed_hash() { store_do 'cat "/store/seed/$1.hash" 2>/dev/null || true' "$1"; }

build_base() {
  have_image "$BASE_TAG" && return
  if ((EUID != 0)); then
    have_image debian:bookworm-slim || outer pull -q debian:bookworm-slim >/dev/null ||
      die "no image registry answers, and debootstrap takes root: run as root"
    outer tag debian:bookworm-slim "$BASE_TAG"
    return
  fi
  local root=$LAB_HOME/rootfs
  say "base system (debootstrap)"
  rm -rf "$root"
  # shellcheck disable=SC2086 # a mirror or nothing
  debootstrap --variant=minbase bookworm "$root" ${LAB_DEBIAN_MIRROR:-} >"$LAB_HOME/debootstrap.log" 2>&1 ||
    die "debootstrap failed, see $LAB_HOME/debootstrap.log"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
  tar -C "$root" -c . | outer import - "$BASE_TAG" >/dev/null
  rm -rf "$root"
}

build_node() {
  if have_image "$NODE_TAG"; then return; fi
  build_base
  local target args=(--network host --build-arg "BASE=$BASE_TAG")
  for target in tools ''; do
    say "node image${target:+, tools}"
    DOCKER_BUILDKIT=0 outer build "${args[@]}" ${target:+--target "$target"} -t "${LAB_PREFIX}/${target:-node}:$NODE_HASH" \
      "$LAB_DIR/node" >"$LAB_HOME/node-image.log" 2>&1 || die "the node image cannot be built, see $LAB_HOME/node-image.log"
  done
}

our_images() {
  local name
  for name in base node tools; do outer images --format '{{.Repository}}:{{.Tag}}' "$LAB_PREFIX/$name"; done
}

# forget_old_images: of earlier scripts.
forget_old_images() {
  local tag
  for tag in $(our_images); do
    case $tag in "$BASE_TAG" | "$NODE_TAG" | "$TOOLS_TAG") ;; *) outer rmi "$tag" >/dev/null 2>&1 || true ;; esac
  done
}

# pip and apt in the builder reach what this machine reaches, by the same settings and certificates.
start_builder() {
  local env=() name ca=''
  for name in $(compgen -e); do
    case $name in
      PIP_CERT | PIP_FIND_LINKS) ;;
      PIP_* | http_proxy | https_proxy | no_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY) env+=(-e "$name") ;;
    esac
  done
  [[ ! -d ${PIP_FIND_LINKS:-} ]] || env+=(-e PIP_FIND_LINKS=/build/wheels)
  [[ ${PIP_FIND_LINKS:-} != *://* ]] || env+=(-e PIP_FIND_LINKS)
  unwarned outer run -d --name "$BUILDER" --label "$LAB_LABEL" --network host "${NODE_RIGHTS[@]}" "${env[@]}" -e PIP_CERT=/build/ca.pem \
    -e PIP_DISABLE_PIP_VERSION_CHECK=1 "$TOOLS_TAG" \
    bash -c 'while :; do sleep 3600 & wait; done' >/dev/null # a PID 1 that reaps
  outer cp "$LAB_DIR/images" "$BUILDER:/build"
  for ca in "${PIP_CERT:-}" "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do [[ -f $ca ]] && break; done
  outer cp -L "$ca" "$BUILDER:/build/ca.pem"
  [[ ! -f /etc/pip.conf ]] || outer cp -L /etc/pip.conf "$BUILDER:/etc/pip.conf"
  [[ ! -d ${PIP_FIND_LINKS:-} ]] || outer cp "$PIP_FIND_LINKS" "$BUILDER:/build/wheels"
  outer exec "$BUILDER" bash /build/builder.sh
  wait_for 30 "the builder's dockerd does not answer" outer exec "$BUILDER" docker version
}

# build_step NAME HASH TEXT: runs images/NAME.sh in the builder and notes what it was made of.
build_step() {
  say "$3"
  outer exec "$BUILDER" bash "/build/$1.sh" >"$LAB_HOME/$1.log" 2>&1 || die "$3: failed, see $LAB_HOME/$1.log"
  outer exec "$BUILDER" sh -c "echo $2 >/store/seed/$1.hash"
}

build_images() {
  build_node
  local ray='' vllm=''
  [[ $(seed_hash ray) == "$RAY_HASH" ]] || ray=1
  [[ $(wanted_images) != *vllm* || $(seed_hash vllm) == "$VLLM_HASH" ]] || vllm=1
  [[ $ray$vllm ]] || return 0
  start_builder
  if [[ $ray ]]; then
    store_do 'rm -f /store/seed/*.hash'
    outer exec "$BUILDER" docker image inspect spark-lab/debian:12 >/dev/null 2>&1 || {
      local c; c=$(outer create --network none --label "$LAB_LABEL" "$BASE_TAG" true)
      outer export "$c" | outer exec -i "$BUILDER" docker import -m base - spark-lab/debian:12 >/dev/null
      outer rm "$c" >/dev/null
    }
    build_step ray "$RAY_HASH" "$RAY_IMAGE"
  fi
  [[ -z $vllm ]] || build_step vllm "$VLLM_HASH" "$VLLM_IMAGE"
  outer exec "$BUILDER" bash /build/builder.sh stop
  outer rm -f "$BUILDER" >/dev/null
}

# What a node's image store has of the seed: metadata of its own, and of each layer but a link to the seed's files, which
# the node mounts read-only. So removing an image removes links. What is there already stays. Takes NODE and NODE_SEED.
# shellcheck disable=SC2016 # expands in the container
LINK_SEED='
  n=/store/nodes/$1/docker s=/store/seed/docker
  mkdir -p "$n/overlay2" "$n/image/overlay2/layerdb"
  cp -an "$s/image/overlay2/imagedb" "$n/image/overlay2/"
  cp -an "$s/image/overlay2/layerdb/sha256" "$n/image/overlay2/layerdb/"
  cp -an "$s/overlay2/l" "$n/overlay2/"
  for layer in "$s"/overlay2/*/diff; do
    from=${layer%/diff} to=$n/overlay2/$(basename "${layer%/diff}")
    [ -e "$to/link" ] && continue
    mkdir -p "$to"
    for f in link lower committed; do [ ! -e "$from/$f" ] || cp -a "$from/$f" "$to/"; done
    ln -sfn "$2/$(basename "$from")/diff" "$to/diff"
  done
'

# seed_node NUMBER: image store and home of a node, before it starts.
seed_node() {
  # shellcheck disable=SC2016 # expands in the container
  store_do "rm -rf /store/nodes/\$1; $LINK_SEED"'
    h=/store/nodes/$1/home
    cp -a "$s/image/overlay2/repositories.json" "$n/image/overlay2/"
    mkdir "$h"; cp -a /etc/skel/. "$h/"
    if [ "$1" = 1 ] && [ -d /store/seed/models ] && [ -f /store/seed/vllm.hash ]; then cp -a /store/seed/models "$h/"; fi
    chown -R 1000:1000 "$h"; chmod 755 "$h"; chmod 711 "$n"
  ' "$1" "$NODE_SEED"
}

# purge_images: all that we left in the outer engine.
purge_images() {
  local tag volume
  for volume in $(listed volume ls); do outer volume rm "$volume" >/dev/null; done
  for tag in $(our_images); do
    outer rmi "$tag" >/dev/null
  done
}
