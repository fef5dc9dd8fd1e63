package diagnose

import "fmt"

// gpuRules know GPU, driver, container toolkit, architecture.
func gpuRules() []Rule {
	return []Rule{
		{
			ID: "no-memory-figure", Row: 48, Kind: Root,
			Any:     []string{"'[N/A]'", `"[N/A]"`, "NVMLError_NotSupported", "'[Not Supported]'"},
			Pattern: `(?:invalid literal|could not convert|ParseInt|Atoi|ValueError).*\[N(?:/A|ot Supported)\]|NVMLError_NotSupported`,
			Message: "invalid literal for int() with base 10: '[N/A]'",
			Cause:   "A tool asked nvidia-smi for the GPU's memory, and GB10 answers [N/A]: its memory is the host's.",
			Fix:     "Use a version of that tool that reads /proc/meminfo on such machines.",
		},
		{
			ID: "no-toolkit", Row: 49, Kind: Root, Fatal: true,
			Any:     []string{"could not select device driver", "unknown or invalid runtime name: nvidia", "nvidia-container-runtime: no such file", "nvidia-container-cli: initialization error"},
			Message: `could not select device driver "" with capabilities: [[gpu]]`,
			Cause:   "Docker on this host cannot give GPUs to containers: the NVIDIA container toolkit is missing or not configured.",
			Fix:     "Install nvidia-container-toolkit there, then `sudo nvidia-ctk runtime configure --runtime=docker` and `sudo systemctl restart docker`.",
		},
		{
			ID: "gpu-dropped", Row: 50, Kind: Root, Fatal: true,
			Any:     []string{"Failed to initialize NVML: Unknown Error", "NVMLError_Unknown"},
			Message: "Failed to initialize NVML: Unknown Error",
			Cause:   "The container lost its GPU devices: `systemctl daemon-reload` on the host takes them away with systemd cgroups.",
			Fix:     "Create the container anew; switch Docker to the cgroupfs driver or to CDI to keep it from coming back.",
			Here:    "Replace the cluster's container on that host; switch Docker to the cgroupfs driver or to CDI to keep it from coming back.",
		},
		{
			ID: "compat-library", Row: 51, Kind: Root, Fatal: true,
			Any:     []string{"rror 803", "unsupported display driver / cuda driver combination"},
			Pattern: `[Ee]rror 803\b|unsupported display driver / cuda driver combination`,
			Message: "Error 803: system has unsupported display driver / cuda driver combination",
			Cause:   "The image's own CUDA compatibility library wins over the host's driver (580 or newer).",
			Fix:     "Run it with --gpus all and without --runtime nvidia, use an image without that library, or put the host's library path first in LD_LIBRARY_PATH.",
			Here:    "Use an image without it, or put the host's library path first in LD_LIBRARY_PATH through the cluster's env.",
		},
		{
			ID: "other-architecture", Row: 53, Kind: Root, Fatal: true,
			Any:     []string{"exec format error", "does not match the detected host platform", "no matching manifest for linux/arm64"},
			Unless:  []string{"(linux/arm64) does not match the detected host platform (linux/arm64"},
			Message: "exec format error; no matching manifest for linux/arm64",
			Cause:   "The image is built for another processor than this host's.",
			Fix:     "A DGX Spark is arm64: use an arm64 image, and pull it with --platform linux/arm64 when it is brought by save and load.",
			Refine: func(_ Hit, evidence Evidence) Answer {
				if evidence.Image == "" {
					return Answer{}
				}
				return Answer{Cause: fmt.Sprintf("The image %s is built for another processor than this host's.", evidence.Image)}
			},
		},
		{
			ID: "old-assembler", Row: 54, Kind: Root, Fatal: true,
			Any:     []string{"ptxas"},
			Pattern: `ptxas fatal\s*: Value '(sm_\w+)' is not defined|ptxas.*(sm_12\w+).*(?:not (?:defined|supported|recognized)|[Uu]nsupported)`,
			Message: "ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'",
			Cause:   "The assembler that Triton brings does not know this GPU.",
			Fix:     "Use a newer image, or set TRITON_PTXAS_PATH to the ptxas of CUDA 13 in the image.",
			Here:    "Use a newer image, or set TRITON_PTXAS_PATH to the ptxas of CUDA 13 in the image through the cluster's env.",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{Cause: fmt.Sprintf("The assembler that Triton brings does not know %s.", hit.Match[1]+hit.Match[2])}
			},
		},
		{
			ID: "no-wheel", Row: 55, Kind: Root,
			Any:     []string{"No matching distribution found for", "is not a supported wheel on this platform"},
			Message: "No matching distribution found for …; … is not a supported wheel on this platform",
			Cause:   "pip finds no wheel of that package for arm64 (or for this Python).",
			Fix:     "Use an image where it is built in; installing at the start also gives each node another version.",
		},
		{
			ID: "gpu-lost", Row: 56, Kind: Root,
			Any:     []string{"Xid (PCI", "has fallen off the bus", "GPU is lost", "NVRM: Xid"},
			Detail:  `Xid \(PCI[^)]*\): (\d+)`,
			Message: "NVRM: Xid (PCI:000f:01:00): 79, GPU has fallen off the bus",
			Cause:   "The driver lost the GPU.",
			Fix:     "Reboot the node. Run without a desktop (`sudo systemctl set-default multi-user.target`), and update driver and firmware; if it comes back, it is a case for repair.",
			Refine: func(hit Hit, _ Evidence) Answer {
				switch hit.Match[1] {
				case "":
					return Answer{}
				case "13", "31", "43", "45":
					return Answer{
						Cause: "The driver stopped a process on the GPU (Xid " + hit.Match[1] + "): a kernel of the program made a fault there.",
						Fix:   "Look for a CUDA error in the log of the rank; try --enforce-eager, other kernels (a moe or attention backend), or another image.",
					}
				}
				return Answer{Cause: "The driver reports a fault of the GPU (Xid " + hit.Match[1] + ")."}
			},
		},
		{
			ID: "no-gpu-visible", Kind: Root,
			Any:     []string{"No CUDA GPUs are available", "Failed to infer device type", "Found no NVIDIA driver on your system", "no CUDA-capable device is detected"},
			Message: "RuntimeError: No CUDA GPUs are available; Failed to infer device type",
			Cause:   "The process sees no GPU: the container was started without one, or CUDA_VISIBLE_DEVICES hides it.",
			Fix:     "Run the container with --gpus all; `nvidia-smi -L` in it must list the GPU.",
			Here:    "`nvidia-smi -L` in the Ray container must list the GPU; apply the cluster again if it does not.",
		},
		{
			ID: "old-driver", Kind: Root,
			Any:     []string{"CUDA driver version is insufficient for CUDA runtime version", "PTX was compiled with an unsupported toolchain", "unsatisfied condition: cuda", "couldn't communicate with the NVIDIA driver"},
			Message: "CUDA driver version is insufficient for CUDA runtime version; unsatisfied condition: cuda>=13.0",
			Cause:   "The host's driver does not run, or is older than the CUDA of the image.",
			Fix:     "Update the driver of every node to one version (`nvidia-smi` shows it), reboot, or use an image with an older CUDA.",
		},
		{
			ID: "same-gpu", Kind: Root,
			Any:     []string{"Duplicate GPU detected", "invalid device ordinal"},
			Message: "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device f01000; invalid device ordinal",
			Cause:   "Two ranks were put on one GPU: they are on one node, or CUDA_VISIBLE_DEVICES was copied between nodes.",
			Fix:     "A DGX Spark has one GPU, so one rank runs on each node: use Ray over all nodes, or --nnodes with one process a node, and leave CUDA_VISIBLE_DEVICES out.",
		},
		{
			ID: "gpu-program", Kind: Root,
			Any:     []string{"CUDA error: an illegal memory access", "CUDA error: device-side assert", "CUDA error: misaligned address", "CUDA error: unspecified launch failure", "CUDA error: an illegal instruction", "cudaErrorIllegalAddress"},
			Pattern: `CUDA error: ([\w -]+)|cudaErrorIllegalAddress`,
			Message: "CUDA error: an illegal memory access was encountered",
			Cause:   "A kernel of the program made a fault on the GPU.",
			Fix:     "Try --enforce-eager, another attention or moe backend, or another image; report it to the project whose kernel it is (CUDA_LAUNCH_BLOCKING=1 names it).",
		},
		{
			ID: "no-compiler", Kind: Root,
			Any:     []string{"Failed to find C compiler", "Python.h: No such file", "nvcc: not found", "Could not find nvcc", "Ninja build failed", "ninja: build stopped"},
			Message: "Failed to find C compiler; Python.h: No such file or directory; Could not find nvcc",
			Cause:   "A kernel must be compiled at the start, and the image lacks the compiler or the compile failed.",
			Fix:     "Use an image with gcc, Python's headers and nvcc of CUDA 13, or one with the kernels built for sm_121.",
		},
	}
}
