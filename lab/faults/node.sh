# shellcheck shell=bash
# Faults of what a node holds: GPU, engine, images, weights.

# set_gpus NODE-NUMBER COUNT: for the node and for the containers that were given its GPUs.
set_gpus() {
  # shellcheck disable=SC2016 # expands in the node
  inside "$1" sh -c 'for f in /etc/lab/gpus /run/lab-gpu/*/gpus; do
      [ -f "$f" ] && host=$(sed -n 2p "$f") && printf "%s\n%s\n" "$1" "$host" >"$f"; done; true' sh "$2"
}

fault_gpu_lost() { # [NODE=2]: nvidia-smi finds no device, a container with --gpus does not start
  local i; i=$(node_index "${1:-2}")
  set_gpus "$i" 0
  echo "$(node_name "$i"): no GPU"
}

stop_node_engine() { # NODE-NUMBER
  # shellcheck disable=SC2016 # expands in the node
  inside "$1" sh -c 'pkill -x dockerd; for n in $(seq 200); do pgrep -x dockerd >/dev/null || exit 0; sleep 0.1; done
    pkill -9 -x dockerd; pkill -9 containerd; sleep 0.5' || true
}

fault_engine_down() { # [NODE=2]: dockerd has ended, and its containers with it
  local i; i=$(node_index "${1:-2}")
  stop_node_engine "$i"
  echo "$(node_name "$i"): dockerd is stopped"
}

fault_image_missing() { # [NODE=2] [ray|vllm]: the image is not in the node's store
  local i image; i=$(node_index "${1:-2}")
  case ${2:-vllm} in
    ray) image=$RAY_IMAGE ;;
    vllm) image=$VLLM_IMAGE ;;
    *) die "knows the images ray and vllm, not \"$2\"" ;;
  esac
  inner "$i" rmi -f "$image" >/dev/null 2>&1 || true
  ! inner "$i" image inspect "$image" >/dev/null 2>&1 || die "$(node_name "$i"): $image cannot be removed"
  echo "$(node_name "$i"): image $image is removed"
}

# find_shard NODE-NUMBER NN: file of the shard NN, in the model's folder or in a hub cache.
find_shard() {
  # shellcheck disable=SC2016 # expands in the node
  inside "$1" sh -c 'find "$1" /home/*/.cache/huggingface/hub -name "*-000$2-of-*.safetensors" 2>/dev/null | head -n1' \
    sh "$MODEL_PATH" "$2"
}
no_model() { die "$(node_name "$1") has no second shard of a model, neither in $MODEL_PATH nor in a hub cache"; }

fault_weights_truncated() { # [NODE=2]: the second shard ends after 1 MB
  local i shard; i=$(node_index "${1:-2}")
  shard=$(find_shard "$i" 02)
  [[ -n $shard ]] || no_model "$i"
  inside "$i" truncate -s '<1000000' "$(inside "$i" realpath "$shard")"
  echo "$(node_name "$i"): $shard is cut to 1000000 bytes"
}

fault_weights_deleted() { # [NODE=2]: the second shard is gone
  local i shard; i=$(node_index "${1:-2}")
  shard=$(find_shard "$i" 02)
  [[ -n $shard || -n $(find_shard "$i" 01) ]] || no_model "$i"
  [[ -z $shard ]] || inside "$i" rm -f "$(inside "$i" realpath "$shard")" "$shard"
  echo "$(node_name "$i"): ${shard:-the second shard} is deleted"
}

# heal_image NODE-NUMBER IMAGE: as its peers have it.
heal_image() {
  local i=$1 image=$2 peer id=''
  ! inner "$i" image inspect "$image" >/dev/null 2>&1 || return 0
  for peer in $(seq "$NODES"); do
    id=$(inner "$peer" image inspect -f '{{.Id}}' "$image" 2>/dev/null) && break
  done
  [[ $id ]] || return 0
  if ! inner "$i" image inspect "$id" >/dev/null 2>&1; then
    if [[ -z $(inner "$i" ps -q) ]]; then
      # An engine reads its store when it starts, so this is quick, but not for a node with running containers.
      stop_node_engine "$i"
      store_do "$LINK_SEED" "$i" "$NODE_SEED"
      inside "$i" /usr/lib/lab/init engine
      await_services "$i"
    else
      inner "$peer" save "$image" | inner "$i" load -q >/dev/null
    fi
  fi
  inner "$i" tag "$id" "$image"
}

heal_node() { # NODE-NUMBER
  local i=$1 image
  [[ $(inside "$i" head -n1 /etc/lab/gpus) != 0 ]] || set_gpus "$i" 1
  inside "$i" pgrep -x dockerd >/dev/null || inside "$i" /usr/lib/lab/init engine
  await_services "$i"
  for image in $RAY_IMAGE $VLLM_IMAGE; do heal_image "$i" "$image"; done
}

# heal_source: the model's only source, which no apply can repair.
heal_source() {
  store_do 's=/store/seed/models/$2 n=/store/nodes/1/home/models/$2
    [ -d "$s" ] || exit 0
    cd "$s"; for f in *; do cmp -s "$f" "$n/$f" || { mkdir -p "$n"; cp -a "$f" "$n/$f"; }; done
    chown -R 1000:1000 "$1/models"' /store/nodes/1/home "${MODEL_PATH##*/}"
}
