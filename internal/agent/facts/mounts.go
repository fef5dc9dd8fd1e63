package facts

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
)

// mounts lists where files can lie, with what is left there.
func (s Source) mounts(odd *notes) []agent.Mount {
	mounts := ParseMountinfo(s.text("/proc/self/mountinfo"))
	for i := range mounts {
		mount := &mounts[i]
		mount.Free = -1
		if s.Root != "" || remote(mount.Type) {
			continue
		}
		free, err := disk.Free(mount.Point)
		if err != nil {
			odd.add(err)
			continue
		}
		mount.Free = free
		var stat unix.Statfs_t
		if unix.Statfs(mount.Point, &stat) == nil && stat.Flags&unix.ST_RDONLY != 0 {
			mount.ReadOnly = true
		}
	}
	return mounts
}

// remote says whether a file system's server may be gone, and asking it then hangs beyond any limit.
func remote(kind string) bool {
	switch kind {
	case "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "afs", "glusterfs", "gfs2", "ocfs2", "beegfs":
		return true
	}
	return kind == "fuse" || strings.HasPrefix(kind, "fuse.")
}

// virtual says whether a file system holds no files of users.
func virtual(kind string) bool {
	switch kind {
	case "proc", "sysfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "mqueue", "securityfs", "pstore", "bpf", "tracefs",
		"debugfs", "configfs", "fusectl", "fuse.lxcfs", "fuse.gvfsd-fuse", "fuse.portal", "hugetlbfs", "autofs", "rpc_pipefs",
		"binfmt_misc", "efivarfs", "nsfs", "selinuxfs", "squashfs", "ramfs":
		return true
	}
	return false
}

// ParseMountinfo reads /proc/self/mountinfo: the file systems that files can lie on. What lies under
// an engine's own folders (the roots of its containers) is left out.
func ParseMountinfo(text string) []agent.Mount {
	var mounts []agent.Mount
	for line := range strings.Lines(text) {
		// 36 35 98:0 /root /point options optional… - type source super-options
		before, after, found := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 6 || len(rest) < 1 || virtual(rest[0]) {
			continue
		}
		point := unescape(fields[4])
		if rest[0] == "overlay" && point != "/" || point == "/dev" ||
			slices.ContainsFunc([]string{"/run/", "/proc/", "/sys/"}, func(folder string) bool { return strings.HasPrefix(point, folder) }) {
			continue
		}
		mounts = append(mounts, agent.Mount{
			Point: point, Type: rest[0], Free: -1,
			ReadOnly: strings.Contains(","+fields[5]+",", ",ro,"),
		})
	}
	return mounts
}

// unescape resolves \040 and the like, which stand for blanks, tabs, line ends and backslashes.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if value, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(value))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
