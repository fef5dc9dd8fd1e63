terraform import ray_cluster.pair spark@10.1.230.180
