"""Prints the node table of the Ray cluster whose container this runs in."""

import logging
import os

import ray

ray.init(address=os.environ["RAY_ADDRESS"], logging_level=logging.ERROR, log_to_driver=False)
print(f"{'address':<16} {'host':<12} {'alive':<6} GPUs")
for node in sorted(ray.nodes(), key=lambda n: n["NodeManagerAddress"]):
    gpus = node["Resources"].get("GPU", 0)
    print(f"{node['NodeManagerAddress']:<16} {node['NodeManagerHostname']:<12} {node['Alive']!s:<6} {gpus:g}")
