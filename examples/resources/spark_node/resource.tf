# The provider finds the fabric address and the GPUs by itself, and follows a new address.
resource "spark_node" "a" {
  host = "10.1.230.180"
}

# Pinned: another address on the host is drift that apply reports and never follows.
resource "spark_node" "b" {
  host           = "10.1.230.181"
  user           = "aurora"
  fabric_address = "192.168.200.13"
  gpu_count      = 1
}
