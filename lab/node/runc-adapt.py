"""Fits an OCI spec to this node: what runc would be refused is lowered to what the node may do, and a container on the
host's network sees the node's made-up /sys. `docker inspect` still shows what was asked for."""
import json
import os
import resource
import sys


def bounding_set():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("CapBnd:"):
                return int(line.split()[1], 16)
    return ~0


CAPS = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT
SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()


def fit_process(process, bound):
    held = {"CAP_" + name for bit, name in enumerate(CAPS) if bound >> bit & 1}
    for kind, names in (process.get("capabilities") or {}).items():
        process["capabilities"][kind] = [n for n in names if n in held]
    if "CAP_SYS_RESOURCE" in held:
        return
    for limit in process.get("rlimits") or []:
        hard = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if hard != resource.RLIM_INFINITY:
            limit["hard"] = min(limit["hard"], hard)
            limit["soft"] = min(limit["soft"], limit["hard"])
    if (process.get("oomScoreAdj") or 0) < 0:
        del process["oomScoreAdj"]


def on_host_network(spec):
    for space in spec.get("linux", {}).get("namespaces", []):
        if space["type"] == "network":
            path = space.get("path")
            return bool(path) and os.path.samefile(path, "/proc/self/ns/net")
    return True


def show_sys(spec):
    if not on_host_network(spec):
        return
    for mount in spec.get("mounts", []):
        if mount["destination"] == "/sys" and mount["type"] == "sysfs":
            mount.update(type="bind", source="/sys", options=["rbind", "nosuid", "noexec", "nodev", "ro"])


def main(path):
    with open(path) as f:
        spec = json.load(f)
    bound = bounding_set()
    if "process" in spec:
        fit_process(spec["process"], bound)
        show_sys(spec)
    else:
        fit_process(spec, bound)
    with open(path, "w") as f:
        json.dump(spec, f)


main(sys.argv[1])
