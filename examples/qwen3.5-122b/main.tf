# Qwen3.5-122B-A10B in FP8 over two DGX Sparks, joined by one QSFP cable.
#
#   management   10.1.230.180    10.1.230.181     10 GbE (enP7s7): SSH and the API
#   fabric       192.168.200.12  192.168.200.13   ConnectX-7, 200 Gb/s: Ray, NCCL, weights
#
# The model has 119 GB of weights. One Spark has about 121 GiB of memory for everything, so it does not fit there with
# room for a KV cache; over two it is 59.5 GB on each.
#
# What must be there before: Docker with the NVIDIA container toolkit, sshd, the user in the group docker, the image on both
# nodes, the weights on one of them. Everything else is Terraform's.
#
#   export SPARK_SSH_PRIVATE_KEY_FILE=~/.ssh/id_ed25519   # or an SSH agent
#   ssh aurora@10.1.230.180 docker pull hellohal2064/vllm-qwen3.5-gb10   # on both nodes
#   ssh aurora@10.1.230.180 hf download Qwen/Qwen3.5-122B-A10B-FP8 --revision COMMIT   # on one node
#   terraform apply -var revision=COMMIT

terraform {
  required_version = ">= 1.0"

  required_providers {
    spark = {
      source = "spark-stack/spark" # one local name only: two would configure the provider at random
    }
  }
}

# No secret here: the key comes from the SSH agent, from SPARK_SSH_PRIVATE_KEY_FILE or from ~/.ssh.
provider "spark" {
  user = "aurora" # no root; a member of the group docker
}

resource "spark_node" "a" {
  host = "10.1.230.180"

  # Pinned, because in this house the addresses are in netplan and a change is somebody's mistake: the plan then says which
  # host has which address instead of following it. Leave it out where addresses may move.
  fabric_address = "192.168.200.12"
  gpu_count      = 1 # a GB10 is one GPU; if it is gone, that is never accepted silently
}

resource "spark_node" "b" {
  host           = "10.1.230.181"
  fabric_address = "192.168.200.13"
  gpu_count      = 1
}

resource "ray_cluster" "pair" {
  provider = spark # ray_cluster does not start with spark_: without this line Terraform looks for a provider named ray

  # Both nodes must have the same image id; the plan compares. A digest instead of a tag keeps it so:
  # docker image inspect --format '{{ index .RepoDigests 0 }}' hellohal2064/vllm-qwen3.5-gb10
  image = "hellohal2064/vllm-qwen3.5-gb10"

  # The server and rank 0 run on the head. Which node it is matters little: both hold half of each layer.
  head    = spark_node.a
  workers = [spark_node.b]

  # No VLLM_HOST_IP, NCCL_SOCKET_IFNAME, NCCL_IB_HCA or NCCL_IB_GID_INDEX: they differ by node, they move with reboots,
  # and a wrong one is the fault that waits half an hour. The provider reads them off each node at each start.
  env = {
    NCCL_NET = "IB" # RDMA or an error; without it NCCL falls back to TCP and is ten times slower without a word
  }

  # weights_dir is the Hugging Face cache of the login user by default, which is where `hf download` puts the model.
}

resource "vllm_deployment" "qwen" {
  provider = spark

  cluster = ray_cluster.pair

  model = {
    repo     = "Qwen/Qwen3.5-122B-A10B-FP8"
    revision = var.revision
  }

  served_model_name    = "qwen3.5-122b"
  tensor_parallel_size = 2 # each layer over both GPUs, one on each node
  port                 = 8000

  args = [
    # 32 Ki tokens for a request. The model takes more; each token costs KV cache on both nodes.
    "--max-model-len", "32768",
    # Of 121.69 GiB. 0.87 has been seen out of reach, since the system, Ray and page cache live in the same memory.
    "--gpu-memory-utilization", "0.80",
    # Few users: less memory for batches that do not come.
    "--max-num-seqs", "16",
  ]

  env = {
    # Loading 59.5 GB and the first compilation of kernels can take longer than vLLM's own 10 minutes.
    VLLM_ENGINE_READY_TIMEOUT_S = "3600"
  }

  # The first apply moves 119 GB over the fabric and compiles kernels.
  timeouts = {
    create = "90m"
    update = "90m"
  }
}
