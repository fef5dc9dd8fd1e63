"""Prints the nodes alive in the Ray cluster whose container this runs in."""

import logging
import os

import ray

ray.init(address=os.environ["RAY_ADDRESS"], logging_level=logging.ERROR, log_to_driver=False)
print(f"{'address':<16} {'host':<12} {'GPUs':<5} node resource")
for node in sorted(ray.nodes(), key=lambda n: n["NodeManagerAddress"]):
    if node["Alive"]:
        resources = node["Resources"]
        identity = [name for name in resources if name.startswith("node:") and name != "node:__internal_head__"]
        print(f"{node['NodeManagerAddress']:<16} {node['NodeManagerHostname']:<12} {resources.get('GPU', 0):<5g} {' '.join(identity)}")
