resource "spark_node" "a" { host = "10.1.230.180" }
resource "spark_node" "b" { host = "10.1.230.181" }

resource "ray_cluster" "pair" {
  provider = spark

  image       = "hellohal2064/vllm-qwen3.5-gb10"
  head        = spark_node.a
  workers     = [spark_node.b]
  weights_dir = "/home/aurora/models"
}

resource "vllm_deployment" "chat" {
  provider = spark # the type's name does not start with spark_, so this line is always needed

  cluster              = ray_cluster.pair
  model                = { path = "/home/aurora/models/qwen3.5-122b-fp8" }
  tensor_parallel_size = 2
  max_model_len        = 32768
  reasoning_parser     = "qwen3"
  args                 = ["--enable-prefix-caching"] # whatever has no attribute of its own

  api_key         = var.api_key # write-only: in no state and no plan
  api_key_version = 1           # another number brings a new key
}

variable "api_key" {
  type      = string
  ephemeral = true
  sensitive = true
}

output "endpoint" {
  value = vllm_deployment.chat.endpoint
}
