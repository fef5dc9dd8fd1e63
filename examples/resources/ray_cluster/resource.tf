resource "spark_node" "a" { host = "10.1.230.180" }
resource "spark_node" "b" { host = "10.1.230.181" }

resource "ray_cluster" "pair" {
  provider = spark # the type's name does not start with spark_, so this line is always needed

  image   = "hellohal2064/vllm-qwen3.5-gb10"
  head    = spark_node.a
  workers = [spark_node.b]
}
