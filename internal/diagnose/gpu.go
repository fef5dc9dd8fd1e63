package diagnose

import "fmt"

// gpuRules know GPU, driver, container toolkit, architecture.
func gpuRules() []rule {
	return []rule{
		{49, `could not select device driver "[^"]*" with capabilities: \[\[gpu\]\]`, true, fixed(
			"Docker on this host cannot give GPUs to containers: the NVIDIA container toolkit is missing or not configured.",
			"Install nvidia-container-toolkit there, then `sudo nvidia-ctk runtime configure --runtime=docker` and `sudo systemctl restart docker`.")},
		{50, `Failed to initialize NVML: Unknown Error`, true, fixed(
			"The container lost its GPU devices: `systemctl daemon-reload` on the host takes them away with systemd cgroups.",
			"Replace the cluster's container on that host; switch Docker to the cgroupfs driver or to CDI to keep it from coming back.")},
		{51, `[Ee]rror 803|unsupported display driver / cuda driver combination`, true, fixed(
			"The image's own CUDA compatibility library wins over the host's driver (580 or newer).",
			"Use an image without it, or put the host's library path first in LD_LIBRARY_PATH through the cluster's env.")},
		{53, `exec format error`, true, func(_ []string, evidence Evidence) (string, string) {
			return fmt.Sprintf("The image %s is built for another processor than this host's.", evidence.Image),
				"A DGX Spark is arm64: use an arm64 image, and pull it with --platform linux/arm64 when it is brought by save and load."
		}},
		{54, `ptxas fatal\s*: Value '(sm_\w+)' is not defined`, true, func(match []string, _ Evidence) (string, string) {
			return fmt.Sprintf("The assembler that Triton brings does not know %s.", match[1]),
				"Use a newer image, or set TRITON_PTXAS_PATH to the ptxas of CUDA 13 in the image through the cluster's env."
		}},
	}
}
