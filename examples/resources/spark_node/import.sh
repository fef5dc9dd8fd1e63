terraform import spark_node.a 10.1.230.180
terraform import spark_node.b aurora@10.1.230.181
terraform import spark_node.c 'aurora@[fd00::30]:2222'
