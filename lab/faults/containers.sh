# shellcheck shell=bash
# Faults of the product's containers, found by their labels.

fault_ray_stopped() { # [NODE=2]: docker stop
  local i box; i=$(node_index "${1:-2}"); box=$(box_on "$i" ray_cluster)
  inner "$i" stop -t 1 "$box" >/dev/null
  echo "$(node_name "$i"): $box is stopped"
}

fault_ray_removed() { # [NODE=2]: docker rm
  local i found; i=$(node_index "${1:-2}")
  found=$(boxes ray_cluster | awk -v i="$i" '$1 == i {print $2}')
  [[ -z $found ]] || inner "$i" rm -f "$found" >/dev/null
  echo "$(node_name "$i"): ${found:-the Ray container} is removed"
}

fault_ray_env() { # [NODE=2]: the container is run again by hand with NCCL_DEBUG=INFO, all else the same
  local i box; i=$(node_index "${1:-2}"); box=$(box_on "$i" ray_cluster)
  rerun "$i" "$box" --env NCCL_DEBUG=INFO
  echo "$(node_name "$i"): $box was run again with NCCL_DEBUG=INFO"
}

# The famous one. Without --node-ip-address Ray takes the address that the default route leaves by.
fault_ray_head_management() { # the head is run again without --node-ip-address: Ray knows it by its management address
  local head box i name role n=1 alive
  read -r head box _ < <(boxes ray_cluster head) || die "no container labelled $LABEL.resource=ray_cluster, role=head"
  # The workers first: an old one that finds a new head makes trouble before it gives up.
  while read -r i name role; do
    [[ $role != worker ]] || inner "$i" stop -t 1 "$name" >/dev/null
  done < <(boxes ray_cluster)
  rerun "$head" "$box" --drop-flag node-ip-address
  wait_for 60 "the new head's Ray does not start: lab/exec $head docker logs $box" ray_alive_count_is "$head" "$box" 1
  while read -r i name role; do
    [[ $role == worker ]] || continue
    rerun "$i" "$name"
    n=$((n + 1))
  done < <(boxes ray_cluster)
  wait_for 90 "the workers do not join: lab/exec 2 docker logs $box" ray_alive_count_is "$head" "$box" "$n"
  alive=$(ray_alive "$head" "$box")
  echo "$(node_name "$head"): $box was run again without --node-ip-address; alive in Ray: $alive"
}

fault_vllm_killed() { # [NODE=1]: SIGKILL to the server's container
  local i box; i=$(node_index "${1:-1}"); box=$(box_on "$i" vllm_deployment)
  ! inner "$i" ps -q --filter "name=^/$box$" | grep -q . || inner "$i" kill "$box" >/dev/null
  echo "$(node_name "$i"): $box is killed"
}

fault_vllm_removed() { # [NODE=1]: docker rm
  local i found; i=$(node_index "${1:-1}")
  found=$(boxes vllm_deployment | awk -v i="$i" '$1 == i {print $2}')
  [[ -z $found ]] || inner "$i" rm -f "$found" >/dev/null
  echo "$(node_name "$i"): ${found:-the vLLM container} is removed"
}
