"""vLLM computes on the CPU and takes Ray's resource "GPU", so that Ray places its workers as it does on real Sparks."""

from vllm.platforms.cpu import CpuPlatform


class SparkLabPlatform(CpuPlatform):
    ray_device_key: str = "GPU"
    ray_noset_device_env_vars: list[str] = ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]
    device_control_env_var: str = "CUDA_VISIBLE_DEVICES"

    @classmethod
    def set_device(cls, device) -> None:
        """There is no device to choose; the base class refuses to be asked."""
