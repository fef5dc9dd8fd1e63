import {
  to = spark_node.b
  id = "aurora@10.1.230.181"
}
