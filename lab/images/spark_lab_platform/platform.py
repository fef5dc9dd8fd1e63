"""vLLM computes on the CPU and takes Ray's resource "GPU", so that Ray places its workers as it does on real Sparks."""

import sys

from vllm.platforms.cpu import CpuPlatform


class SparkLabPlatform(CpuPlatform):
    ray_device_key: str = "GPU"
    ray_noset_device_env_vars: list[str] = ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]
    device_control_env_var: str = "CUDA_VISIBLE_DEVICES"

    @classmethod
    def set_device(cls, device) -> None:
        """There is no device to choose; the base class refuses to be asked."""


def compute_graphs_on_cpu() -> None:
    """vLLM's older Ray executor runs the model in a compiled graph of Ray's, which takes a worker that holds a GPU for a
    CUDA device. Tell it otherwise, in the way that Ray offers. Only Ray's workers have Ray loaded by now."""
    from ray.experimental.channel.accelerator_context import register_accelerator_context
    from ray.experimental.channel.cpu_communicator import CPUCommunicator

    register_accelerator_context("cpu", CPUCommunicator)


if "ray" in sys.modules:
    compute_graphs_on_cpu()
