package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

const (
	// skewLimit is from where certificates are "not yet valid" sooner or later.
	skewLimit = 30 * time.Second
	// roomLimit in bytes: below, the engine cannot make a container or write a log for long.
	roomLimit = 1 << 30
	// half is what a half of a Spark's port carries, in Gb/s.
	half = 100
	// sparkPort is the speed that both halves of a Spark's port report, in Mb/s.
	sparkPort = 200_000
	sparkGPU  = "NVIDIA GB10"
)

// contiguousMemory: kernels that reserve memory for handing over (KHO) cannot register memory for RDMA.
func contiguousMemory(member Member) *Finding {
	memory := member.Facts.Memory
	if len(member.Facts.RDMA) == 0 || memory.CMAFree <= memory.CMATotal {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 37, Summary: member.name() + ": the kernel counts more free CMA than there is",
		Cause: fmt.Sprintf("CmaFree is %d MiB and CmaTotal %d MiB with kernel %s. With such kernels (7.0.0-1019 and -31) NCCL ends with \"ibv_reg_mr_iova2 … Cannot allocate memory\", whatever the limits.",
			memory.CMAFree>>20, memory.CMATotal>>20, member.Facts.Kernel),
		Fix: "Boot with kho=off on the kernel's command line, or with kernel 6.17.",
	}
}

// verbsMissing: without the device files NCCL falls back to sockets, without a word.
func verbsMissing(member Member) *Finding {
	if len(member.Facts.RDMA) == 0 || len(member.Facts.Verbs) > 0 {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 38, Summary: member.name() + ": /dev/infiniband is empty",
		Cause: fmt.Sprintf("%s has the RDMA device %s and no /dev/infiniband/uverbs*, which containers need. NCCL then uses sockets, ten times slower, and says nothing.", member.name(), member.Facts.RDMA[0].Name),
		Fix:   "Load the module there: sudo modprobe ib_uverbs (package rdma-core makes it last).",
	}
}

// pciDegraded: a half of a port that is wired or trained below what it carries.
func pciDegraded(member Member) *Finding {
	for _, device := range member.Facts.RDMA {
		pci := device.PCI
		carries := float64(pci.Width) * pci.Speed * 128 / 130
		degraded := pci.Width < pci.MaxWidth || pci.Speed < pci.MaxSpeed
		if !device.Active || carries <= 0 || carries >= half || !degraded || speedOf(member.Facts, device.Interface) < half*1000 {
			continue
		}
		finding := &Finding{
			Severity: Warning, Row: 39, Summary: fmt.Sprintf("%s: %s runs below its speed", member.name(), device.Name),
			Cause: fmt.Sprintf("The PCIe link of %s (%s, %s) is x%d at %g GT/s, about %.0f Gb/s; a half of the port carries %d.", device.Name, device.Interface, pci.Address, pci.Width, pci.Speed, carries, half),
			Fix:   "Cut the power of the machine for a minute (a restart is not enough), then update its firmware (fwupdmgr) if that did not help.",
		}
		if pci.Speed >= 32 {
			finding.Row = 40
			finding.Fix = "Update the firmware (sudo fwupdmgr update): before 2026-04 it wired the second half with two lanes."
		}
		return finding
	}
	return nil
}

func speedOf(facts agent.Facts, name string) int {
	at := slices.IndexFunc(facts.Interfaces, func(device agent.Interface) bool { return device.Name == name })
	if at < 0 {
		return 0
	}
	return facts.Interfaces[at].SpeedMbps
}

// slowLink: a switch that negotiated less than a Spark's port can.
func slowLink(member Member) *Finding {
	if !slices.ContainsFunc(member.Facts.GPUs, func(gpu agent.GPU) bool { return gpu.Name == sparkGPU }) {
		return nil // Other machines have other ports.
	}
	for _, device := range member.Facts.RDMA {
		speed := speedOf(member.Facts, device.Interface)
		if !device.Active || speed <= 0 || speed >= sparkPort {
			continue
		}
		return &Finding{
			Severity: Warning, Row: 41, Summary: fmt.Sprintf("%s: %s has %d Gb/s", member.name(), device.Interface, speed/1000),
			Cause: fmt.Sprintf("The link of %s (%s) negotiated %d Gb/s; a Spark's port has %d. A switch that negotiates by itself may settle for less.", device.Interface, device.Name, speed/1000, sparkPort/1000),
			Fix:   "Set the speed on the switch's port, and see that the cable is made for it.",
		}
	}
	return nil
}

// toolkitMissing: the engine cannot give a container a GPU.
func toolkitMissing(member Member) *Finding {
	toolkit := member.Facts.Toolkit
	if len(member.Facts.GPUs) == 0 || len(toolkit.Programs) > 0 || len(toolkit.CDI) > 0 || toolkit.Runtime {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 49, Summary: member.name() + ": the NVIDIA container toolkit was not found",
		Cause: `No program of it, no CDI specification and no runtime "nvidia" is where they usually are. Docker then answers: could not select device driver "" with capabilities: [[gpu]].`,
		Fix:   "Install it there: sudo apt install nvidia-container-toolkit; sudo nvidia-ctk runtime configure --runtime=docker; sudo systemctl restart docker.",
	}
}

// desktop: what draws shares the GPU and its memory.
func desktop(member Member) *Finding {
	servers := member.Facts.Display.Servers
	if len(servers) == 0 || len(member.Facts.GPUs) == 0 {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 56, Summary: member.name() + ": a desktop runs on the GPU",
		Cause: fmt.Sprintf("%s draws on the GPU that serves (default target: %s). Under load the desktop freezes, and a lost GPU (Xid 79) was reported.", strings.Join(servers, ", "), member.Facts.Display.Target),
		Fix:   "sudo systemctl set-default multi-user.target, then restart; sudo systemctl isolate multi-user.target for now.",
	}
}

// diskFull: nothing can be started where the engine cannot write.
func diskFull(member Member) *Finding {
	for _, folder := range []string{member.Facts.DockerRoot, member.Facts.User.Home} {
		mount, found := MountOf(member.Facts, folder)
		if !found || mount.Free < 0 || mount.Free >= roomLimit {
			continue
		}
		return &Finding{
			Severity: Warning, Row: 67, Summary: fmt.Sprintf("%s: %s is nearly full", member.name(), mount.Point),
			Cause: fmt.Sprintf("%d MiB are left on %s (%s), where %s lies. Containers and copies fail there with odd errors.", mount.Free>>20, mount.Point, mount.Type, folder),
			Fix:   "Free space there: docker system df, docker image prune, and models that nobody serves.",
		}
	}
	return nil
}

// MountOf is the mount on which an absolute folder lies, as far as its name tells: links are not
// followed.
func MountOf(facts agent.Facts, folder string) (agent.Mount, bool) {
	var best agent.Mount
	found := false
	for _, mount := range facts.Mounts {
		below := mount.Point == "/" || folder == mount.Point || strings.HasPrefix(folder, mount.Point+"/")
		// Of several on one point the last one is on top.
		if strings.HasPrefix(folder, "/") && below && (!found || len(mount.Point) >= len(best.Point)) {
			best, found = mount, true
		}
	}
	return best, found
}

// clockSkew: a clock that is wrong fails certificates of registries and of the hub.
func clockSkew(member Member) *Finding {
	offset := member.Facts.ClockOffset
	if offset.Abs() <= skewLimit {
		return nil
	}
	word := "ahead of"
	if offset < 0 {
		word = "behind"
	}
	return &Finding{
		Severity: Warning, Row: 101, Summary: fmt.Sprintf("%s: the clock is %s off", member.name(), offset.Abs().Round(time.Second)),
		Cause: fmt.Sprintf("It is %s %s this machine's. Certificates of registries and hubs are then \"not yet valid\" or expired, and times in logs do not match.", offset.Abs().Round(time.Second), word),
		Fix:   "sudo timedatectl set-ntp true there; or correct the clock of this machine.",
	}
}

// memoryOverride: a leftover of a workaround that halves what CUDA sees.
func memoryOverride(member Member) *Finding {
	if !member.Facts.DRMOverride {
		return nil
	}
	return &Finding{
		Severity: Warning, Row: 105, Summary: member.name() + ": an override of the NVIDIA driver is in force",
		Cause: "/etc/modprobe.d/zz-nvidia-drm-override.conf exists. With it CUDA was reported to see about 62 of 121 GiB.",
		Fix:   "Remove the file there, run sudo update-initramfs -u, and restart.",
	}
}
