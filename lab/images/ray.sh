#!/bin/bash
# In the builder: spark-lab/ray, which is Debian's Python and Ray from PyPI.
source "$(dirname "$0")/lib.sh"
DOCKER_BUILDKIT=0 docker build -q --network host -t spark-lab/python:3.11 -f /build/ray.Dockerfile /build/empty
open_image spark-lab/python:3.11
pip_install ray==2.60.0 -c /build/vllm.lock
rm -rf "${ROOT:?}/$SITE/ray/dashboard/client"
compile_image
close_image spark-lab/ray:2.60.0 'CMD ["bash"]' 'ENV RAY_USAGE_STATS_ENABLED=0'
