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

# Reached in a way of its own: behind a jump host, with another key, and switched off at night.
resource "spark_node" "c" {
  host             = "aurora-3.lab.example"
  port             = 2222
  private_key_file = "~/.ssh/lab"
  host_key         = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
  proxy_jump       = ["ops@gate.lab.example"]
  unreachable      = "keep"
  ignore_drift     = ["reachable"]
}
