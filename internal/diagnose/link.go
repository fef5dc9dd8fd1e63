package diagnose

import "strings"

// linkRules know RDMA, NCCL and the link.
func linkRules() []rule {
	return []rule{
		{34, `ibv_modify_qp failed with (?:error )?(?:110\b|Connection timed out)`, false, fixed(
			"NCCL's RDMA connection timed out: the GID index of a node does not point to the RoCE v2 entry of its identity address. The index moves after a reboot.",
			"Apply the cluster again: the index is read anew on each node at each start.")},
		{36, `ibv_reg_mr\w*[^\n]*(?:Cannot allocate memory|ENOMEM)`, false, memlock},
		{9, `Socket operation on non-socket`, false, fixed(
			"NCCL was given an interface that cannot carry its traffic (NCCL_SOCKET_IFNAME).",
			"Apply the cluster again: the interface that holds the identity address is looked up on each node.")},
	}
}

// memlock tells the container's limit from the kernel's fault, which has the same message.
func memlock(_ []string, evidence Evidence) (string, string) {
	if strings.HasPrefix(evidence.Kernel, "7.0.0-") {
		return "RDMA could not register memory. On the kernel " + evidence.Kernel + " that also happens without any limit: kexec handover reserves the memory.",
			"Boot with kho=off or with a 6.17 kernel; if that does not help, the Ray container lacks an unlimited memlock."
	}
	return "RDMA could not register memory: the Ray container lacks an unlimited memlock or CAP_IPC_LOCK.",
		"Apply the cluster again: both are set where the node has RDMA devices."
}
