package diagnose

import (
	"fmt"
	"strings"
)

const applyIndex = "Apply the cluster again: the index is read anew on each node at each start."

// linkRules know RDMA, NCCL and the link.
func linkRules() []Rule {
	return []Rule{
		{
			ID: "gid-index", Row: 34, Kind: Root,
			Any:     []string{"ibv_modify_qp failed"},
			Message: "Call to ibv_modify_qp failed with 110 Connection timed out",
			Cause:   "NCCL's RDMA connection failed: the GID index of a node does not point to the RoCE v2 entry of its identity address. The index differs by node and moves after a reboot.",
			Fix:     "Read it on each node at each start (`show_gids`, or /sys/class/infiniband/*/ports/1/gids): NCCL_IB_GID_INDEX must be the v2 entry with the fabric's IPv4 address, or set NCCL_IB_ROCE_VERSION_NUM=2 and NCCL_IB_ADDR_FAMILY=AF_INET instead.",
			Here:    applyIndex,
		},
		{
			ID: "gid-moved", Row: 35, Kind: Root,
			Any:     []string{"GID table changed", "ibv_query_gid failed", "ibv_query_gid_ex failed"},
			Message: "NET/IB : rocep1s0f0:1 GID table changed",
			Cause:   "The GID table of an RDMA device is not what it was when NCCL's index was chosen: addresses were added or removed.",
			Fix:     "Never store NCCL_IB_GID_INDEX: read it again on each node at each start.",
			Here:    applyIndex,
		},
		{
			ID: "rdma-retry", Row: 34, Kind: Mechanism,
			Any:     []string{"IBV_WC_RETRY_EXC_ERR", "status=12 opcode", "transport retry counter exceeded", "IBV_WC_RNR_RETRY_EXC_ERR"},
			Message: "NET/IB: Got completion from peer … with status=IBV_WC_RETRY_EXC_ERR(12)",
			Cause:   "RDMA packets to the other node were never answered: a wrong GID index, another MTU on the way, a cable, or a peer that ended.",
			Fix:     "If the peer's log has no error of its own: compare GID indices and MTU on both ends (`ping -M do -s 8972`), then the cable.",
			Here:    "If the peer's log has no error of its own, apply the cluster again: the index is read anew.",
		},
		{
			ID: "memlock", Row: 36, Kind: Root,
			Any:     []string{"ibv_reg_mr"},
			Pattern: `ibv_reg_mr\w*.*(?:Cannot allocate memory|ENOMEM|errno 12)`,
			Message: "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
			Cause:   "RDMA could not register memory: the container lacks an unlimited memlock or CAP_IPC_LOCK.",
			Fix:     "Run it with --ulimit memlock=-1:-1 --cap-add IPC_LOCK. If it has both and the kernel is 7.0.0-1019 or -31, boot with kho=off.",
			Here:    "Apply the cluster again: both are set where the node has RDMA devices.",
			Refine:  memlock,
		},
		{
			ID: "no-rdma", Row: 38, Kind: Condition,
			Any:     []string{"via NET/Socket", "NCCL INFO Using network Socket", "NET/Socket : Using"},
			Message: "NCCL INFO Using network Socket; … via NET/Socket/0",
			Cause:   "NCCL goes over TCP instead of RDMA, about ten times slower: /dev/infiniband or libibverbs is missing in a container, or NCCL_IB_DISABLE=1 is set.",
			Fix:     "Give every container --device /dev/infiniband and CAP_IPC_LOCK (`ibv_devices` in it must list them), unset NCCL_IB_DISABLE, and set NCCL_NET=IB so that a fall-back is an error.",
			Here:    "Is /dev/infiniband on the node? Then apply the cluster again, with env = { NCCL_NET = \"IB\" } to make a fall-back an error.",
			Refine: func(hit Hit, evidence Evidence) Answer {
				if hit.Spread || len(evidence.Nodes) > 1 || strings.Contains(hit.Text, "via NET/Socket") {
					return Answer{}
				}
				return declined() // Ranks of one node need no network.
			},
		},
		{
			ID: "rdma-refused", Row: 38, Kind: Root,
			Any:     []string{"network IB not found", "Failed to initialize NET plugin IB"},
			Message: "NCCL WARN Error: network IB not found",
			Cause:   "NCCL was told to use RDMA (NCCL_NET=IB), and the container has no RDMA device or no libibverbs.",
			Fix:     "Give the container --device /dev/infiniband and CAP_IPC_LOCK; `ibv_devices` in it must list them.",
			Here:    "Is /dev/infiniband on the node? Then apply the cluster again.",
		},
		{
			ID: "pcie-width", Row: 40, Kind: Condition,
			Any:     []string{"mlx5_core"},
			Pattern: `available PCIe bandwidth, limited by ([\d.]+) GT/s PCIe x(\d+) link`,
			Message: "mlx5_core … available PCIe bandwidth, limited by 32.0 GT/s PCIe x2 link",
			Cause:   "A half of the network port has two PCIe lanes instead of four: firmware before 2026-04 wires it so.",
			Fix:     "Update the firmware (`fwupdmgr update`); current_link_width in /sys must be 4.",
			Refine: func(hit Hit, _ Evidence) Answer {
				switch {
				case strings.HasPrefix(hit.Match[1], "32") && hit.Match[2] == "2":
					return Answer{}
				case strings.HasPrefix(hit.Match[1], "32"):
					return declined()
				}
				return Answer{
					Row:   39,
					Cause: fmt.Sprintf("The network port's PCIe link runs at %s GT/s instead of 32: it is in a low-power state, or degraded after hot-plugging.", hit.Match[1]),
					Fix:   "Take the power away for a minute, plug the cable in again, and update the firmware.",
				}
			},
		},
		{
			ID: "mtu", Row: 42, Kind: Root,
			Any:     []string{"local error: message too long", "Frag needed and DF set", "message too long, mtu="},
			Message: "ping: local error: message too long, mtu=1500",
			Cause:   "A hop has a smaller MTU than the sender: large copies and NCCL stall while small pings pass.",
			Fix:     "Give both ends and the switch one MTU (9000, switch 9216); test both ways with `ping -M do -s 8972`.",
		},
		{
			ID: "no-gdr", Row: 43, Kind: Condition,
			Any:     []string{"nvidia_peermem", "nvidia-peermem"},
			Pattern: `nvidia[_-]peermem.*Invalid argument`,
			Message: "modprobe: could not insert 'nvidia_peermem': Invalid argument",
			Cause:   "GB10 has no GPUDirect RDMA, so nvidia-peermem cannot load, and GDR settings have no effect.",
			Fix:     "Leave nvidia-peermem and NCCL_NET_GDR_LEVEL out; nothing is lost.",
		},
		{
			ID: "old-nccl", Row: 44, Kind: Root,
			Any:     []string{"libnccl.so.2: cannot open shared object", "libnccl.so.2 not found", "no kernel image is available for execution on the device", "Could not find nccl", "undefined symbol: nccl", "sm_121", "compute capability 12.1", "SM121", "SM120"},
			Pattern: `libnccl|no kernel image|Could not find nccl|undefined symbol: nccl|(?:[Ee]rror|Exception)\b.*(?:sm_12[01]\w?|SM12[01]|capability 12\.1).*(?:[Nn]ot supported|[Uu]nsupported|not compatible|requires)|(?:[Nn]ot supported|[Uu]nsupported|not compatible).*(?:on|for|by|architecture:?|arch) (?:sm_12[01]|SM12[01]|compute capability 12\.1)`,
			Unless:  []string{"WARNING", "Warning", "ptxas", "INFO"},
			Message: "libnccl.so.2: cannot open shared object file; no kernel image is available for execution on the device",
			Cause:   "The image is not made for this GPU (sm_121): NCCL is missing or too old, or kernels were built for other GPUs only.",
			Fix:     "Use an image with NCCL 2.28 or newer and kernels for sm_121 (TORCH_CUDA_ARCH_LIST with 12.1a).",
		},
		{
			ID: "link-fault", Row: 46, Kind: Root,
			Any:     []string{"AER: ", "PCIe Bus Error: severity=Uncorrect", "BUG: soft lockup", "health compromised", "mlx5_pci_slot_reset", "async fatal event"},
			Pattern: `AER:.*(?:[Ff]atal|Uncorrect)|severity=Uncorrect|soft lockup|health compromised|mlx5_pci_slot_reset|async fatal event`,
			Unless:  []string{"severity=Corrected"},
			Message: "pcieport …: AER: Uncorrectable (Fatal) error; watchdog: BUG: soft lockup",
			Cause:   "The network card's PCIe link failed, or the kernel locked up in its recovery: ranks time out as a consequence.",
			Fix:     "Update the firmware (`fwupdmgr update`), try another cable, and reboot the node; if it comes back, it is a case for repair.",
		},
		{
			ID: "stalled-copy", Row: 47, Kind: Root,
			Any:     []string{"timeout in data send/receive (code 30)", "io timeout after", "the transfer stalled", "stalled stream"},
			Message: "rsync error: timeout in data send/receive (code 30)",
			Cause:   "A copy's connection stood still.",
			Fix:     "Cut it and resume: what was copied is kept. If it happens again at once, compare the MTU of both ends.",
			Here:    "Apply again: it goes on from what is there.",
		},
		{
			ID: "nccl", Kind: Mechanism,
			Any: []string{
				"NCCL error: ", "ncclSystemError", "ncclRemoteError", "ncclInternalError", "ncclUnhandledCudaError",
				"Watchdog caught collective operation timeout", "Connection closed by remote peer",
			},
			Message: "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
			Cause:   "NCCL failed between the ranks, and this log does not say why.",
			Fix:     "Look at the logs of all ranks for the first NCCL WARN; set NCCL_DEBUG=INFO if there is none. Usual reasons: another rank died, a wrong interface or GID index, a memlock limit.",
		},
	}
}

// memlock tells the container's limit from the kernel's fault, which has the same message.
func memlock(hit Hit, evidence Evidence) Answer {
	kernel := hit.Kernel
	if known := evidence.kernel(hit.Host); known != "" {
		kernel = known
	}
	if !strings.HasPrefix(kernel, "7.0.0-") {
		return Answer{}
	}
	return Answer{
		Row:   37,
		Cause: "RDMA could not register memory. On the kernel " + kernel + " that also happens without any limit: kexec handover reserves the memory (CmaFree is then above CmaTotal in /proc/meminfo).",
		Fix:   "Boot with kho=off or with a 6.17 kernel; if that does not help, the container lacks an unlimited memlock.",
	}
}
