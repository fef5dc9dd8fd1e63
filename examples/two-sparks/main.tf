# One model over two DGX Sparks. The addresses, the image and the model are those of the lab that `make demo` starts;
# with two real machines the same lines serve, with your own values. Login and key come from the environment
# (SPARK_SSH_USER, SPARK_SSH_PRIVATE_KEY_FILE, SPARK_SSH_KNOWN_HOSTS_FILE; `lab/env` prints them).

terraform {
  required_providers {
    spark = {
      source = "spark-stack/spark"
    }
  }
}

variable "hosts" {
  description = "Management addresses of the two nodes, the head first."
  type        = list(string)
  default     = ["10.1.230.180", "10.1.230.181"]

  validation {
    condition     = length(var.hosts) == 2
    error_message = "This example is for two nodes."
  }
}

resource "spark_node" "a" { host = var.hosts[0] }
resource "spark_node" "b" { host = var.hosts[1] }

resource "ray_cluster" "pair" {
  provider = spark

  image       = "spark-lab/vllm:0.32.0"
  head        = spark_node.a
  workers     = [spark_node.b]
  weights_dir = "/home/aurora/models"
}

resource "vllm_deployment" "tiny" {
  provider = spark

  cluster              = ray_cluster.pair
  model                = { path = "/home/aurora/models/tiny-qwen3" } # on one node; the other gets it over the fabric
  tensor_parallel_size = 2                                           # each layer is split over both GPUs
  args                 = ["--enforce-eager", "--max-model-len", "512"]
}

output "endpoint" {
  value = vllm_deployment.tiny.endpoint
}

output "served_model_name" {
  value = vllm_deployment.tiny.served_model_name
}

output "nodes" {
  description = "What Ray knows of each node."
  value       = { for host, node in ray_cluster.pair.nodes : host => "${node.role} ${node.address}, ${node.gpu_count} GPU" }
}
