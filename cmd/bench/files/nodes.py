"""Prints Ray's node table and placement groups, by the public API that vLLM itself uses."""

import logging
import os

import ray
from ray.util import placement_group_table

ray.init(address=os.environ["RAY_ADDRESS"], logging_level=logging.ERROR, log_to_driver=False)
for node in sorted(ray.nodes(), key=lambda n: n["NodeManagerAddress"]):
    print(node["NodeManagerAddress"], node["Alive"], node["Resources"].get("GPU", 0))
print("free", ray.available_resources().get("GPU", 0))
for group in placement_group_table().values():
    print(group["state"], sorted(group["bundles"].values(), key=str))
