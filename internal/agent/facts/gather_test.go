package facts

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// spark lays out the files of a DGX Spark with one cable in port 0.
func spark(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	hca := "/sys/class/infiniband/rocep1s0f0"
	twin := "/sys/class/infiniband/roceP2p1s0f0"
	write(t, root, map[string]string{
		"/etc/os-release":       "PRETTY_NAME=\"DGX OS 7.3.1\"\n",
		"/proc/meminfo":         "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 900 kB\n",
		"/proc/net/route":       "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\nenP7s7 00000000 01E6010A 0003 0 0 100 00000000 0 0 0\n",
		"/proc/net/tcp":         "sl\n0: 00000000:1F40 00000000:0000 0A\n1: 00000000:0016 00000000:0000 0A\n",
		"/proc/net/tcp6":        "sl\n0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A\n",
		hca + "/ports/1/state":  "4: ACTIVE\n",
		hca + "/ports/1/gids/0": "fe80:0000:0000:0000:4ebb:47ff:fe2c:1a3b\n", hca + "/ports/1/gid_attrs/types/0": "IB/RoCE v1\n",
		hca + "/ports/1/gids/1": "fe80:0000:0000:0000:4ebb:47ff:fe2c:1a3b\n", hca + "/ports/1/gid_attrs/types/1": "RoCE v2\n",
		hca + "/ports/1/gids/2": "0000:0000:0000:0000:0000:ffff:c0a8:c80c\n", hca + "/ports/1/gid_attrs/types/2": "IB/RoCE v1\n",
		hca + "/ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:c0a8:c80c\n", hca + "/ports/1/gid_attrs/types/3": "RoCE v2\n",
		hca + "/ports/1/gids/10":               "0000:0000:0000:0000:0000:0000:0000:0000\n",
		hca + "/ports/1/gid_attrs/ndevs/0":     "enp1s0f0np0\n",
		twin + "/ports/1/state":                "1: DOWN\n",
		twin + "/device/net/enP2p1s0f0np0/mtu": "1500\n",
		hca + "/fw_ver":                        "28.45.4028\n",
		hca + "/ports/1/link_layer":            "Ethernet\n",
		hca + "/ports/1/rate":                  "200 Gb/sec (4X HDR)\n",
		hca + "/device/current_link_width":     "4\n", hca + "/device/max_link_width": "16\n",
		hca + "/device/current_link_speed": "32.0 GT/s PCIe\n", hca + "/device/max_link_speed": "32.0 GT/s PCIe\n",
		"/dev/infiniband/uverbs0": "", "/dev/infiniband/rdma_cm": "",
		"/etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda4\n",
		"/etc/hosts":      "127.0.1.1 spark-a\n", "/etc/ufw/ufw.conf": "ENABLED=yes\n", "/etc/default/ufw": "DEFAULT_INPUT_POLICY=\"DROP\"\n",
		"/usr/bin/nvidia-ctk": "", "/etc/docker/daemon.json": `{"runtimes": {"nvidia": {}}}`, "/etc/cdi/nvidia.yaml": "",
		"/etc/modprobe.d/zz-nvidia-drm-override.conf": "",
		"/proc/sys/net/ipv4/ip_forward":               "1\n", "/proc/sys/net/ipv4/conf/enp1s0f0np0/rp_filter": "2\n",
		"/proc/self/mountinfo": "22 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n",
		"/proc/70/comm":        "raylet\n", "/proc/70/cmdline": "raylet\x00--node_ip_address=10.1.230.180\x00",
		"/proc/70/environ": "VLLM_HOST_IP=192.168.200.12\x00", "/proc/70/cgroup": "0::/docker/" + container,
		"/proc/71/comm": "Xorg\n", "/proc/72/comm": "bash\n", "/proc/3104/cgroup": "0::/docker/" + container,
	})
	if err := os.Symlink("/lib/systemd/system/graphical.target", filepath.Join(root, "/etc/systemd/system/default.target")); err != nil {
		t.Fatal(err)
	}
	return root
}

var container = strings.Repeat("0123456789abcdef", 4)

// write makes files below a root.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "/etc/systemd/system"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// failing is Source.Run on a machine where each program ends badly.
func failing(_ context.Context, program string, _ ...string) (string, error) {
	return "", errors.New(map[string]string{"nvidia-smi": "exit status 9", "iptables": "exit status 4", "sudo": "exit status 1"}[program])
}

// answering is Source.Run on a healthy node.
func answering(_ context.Context, program string, arguments ...string) (string, error) {
	switch program + " " + strings.Join(arguments, " ") {
	case "sudo -n true":
		return "", nil
	case "nvidia-smi -q -d MEMORY,PIDS":
		return "CUDA Version : 13.0\nGPU 1:0\n    Processes\n        Process ID : 3104\n            Type : G\n", nil
	}
	return "", errors.New("unexpected " + program)
}

func TestGather(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	interfaces := []agent.Interface{{Name: "enp1s0f0np0", Up: true, MTU: 9000, SpeedMbps: 200000, PhysicalPort: "p0",
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.200.12/24")}}}
	user := agent.User{Name: "aurora", UID: 1000, GID: 1000, Home: "/home/aurora", Groups: []string{"aurora", "docker", "sudo"}}
	routing := agent.Routing{Routes: []agent.Route{{Table: 254, Type: agent.RouteUnicast, Interface: "enP7s7"}}}
	source := Source{
		Root: spark(t), Hostname: "spark-a", Architecture: "arm64", Kernel: "6.17.0-1008-nvidia", User: &user,
		Interfaces: func() ([]agent.Interface, error) { return interfaces, nil },
		NvidiaSMI:  func(context.Context) (string, error) { return "0, NVIDIA GB10, GPU-1, 580.95.05\n", nil },
		Now:        func() time.Time { return now },
		Routing:    func() (agent.Routing, error) { return routing, nil },
		Run:        answering,
	}
	got, err := source.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	withSudo := user
	withSudo.Sudo = "yes"
	want := agent.Facts{
		Hostname: "spark-a", Architecture: "arm64", Kernel: "6.17.0-1008-nvidia", OS: "DGX OS 7.3.1", Time: now,
		User: withSudo, Interfaces: interfaces, DefaultInterface: "enP7s7",
		RDMA: []agent.RDMADevice{
			{Name: "roceP2p1s0f0", Interface: "enP2p1s0f0np0", GIDs: []agent.GID{}},
			{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true,
				GIDs:      []agent.GID{{Index: 3, Address: netip.MustParseAddr("192.168.200.12")}},
				LinkLayer: "Ethernet", Firmware: "28.45.4028", RateGbps: 200, PCI: agent.PCILink{Width: 4, MaxWidth: 16, Speed: 32, MaxSpeed: 32}},
		},
		HostnameAddresses: []netip.Addr{netip.MustParseAddr("127.0.1.1")}, MachineID: "3d1219c7c4c5404aaa1f6d2a48adfda4",
		Routing: routing, Sysctls: map[string]int{"net.ipv4.ip_forward": 1, "net.ipv4.conf.enp1s0f0np0.rp_filter": 2},
		Firewall: agent.Firewall{UFW: "enabled", Input: "DROP"}, Verbs: []string{"uverbs0"}, CUDA: "13.0",
		GPUProcesses: []agent.GPUProcess{{PID: 3104, Type: "G", Container: container}},
		Toolkit:      agent.Toolkit{Programs: []string{"/usr/bin/nvidia-ctk"}, Runtime: true, CDI: []string{"/etc/cdi/nvidia.yaml"}},
		DockerRoot:   "/var/lib/docker", Mounts: []agent.Mount{{Point: "/", Type: "ext4", Free: -1}},
		Display: agent.Display{Target: "graphical.target", Servers: []string{"Xorg"}}, DRMOverride: true,
		Rays: []agent.RayProcess{{PID: 70, Kind: "raylet", NodeAddress: "10.1.230.180", HostIP: "192.168.200.12", Container: container}},
		Listeners: []agent.Listener{
			{Address: netip.MustParseAddr("0.0.0.0"), Port: 22}, {Address: netip.MustParseAddr("::"), Port: 22},
			{Address: netip.MustParseAddr("0.0.0.0"), Port: 8000},
		},
		GPUs: []agent.GPU{{Name: "NVIDIA GB10", UUID: "GPU-1"}}, Driver: "580.95.05",
		Memory: agent.Memory{Total: 1000 << 10, Available: 900 << 10, Free: 100 << 10}, Listening: []int{22, 8000},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
}

func TestGatherOnThisMachine(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // Nothing was written.
	source := Source{NvidiaSMI: func(context.Context) (string, error) { return "", errors.New("none here") }, Run: failing}
	started := time.Now()
	got, err := source.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > time.Second {
		t.Errorf("took %s", took)
	}
	if got.Hostname == "" || got.Kernel == "" || got.Memory.Total == 0 || len(got.Interfaces) == 0 || got.GPUError == "" {
		t.Errorf("facts are missing: %+v", got)
	}
	own := agent.Listener{Address: netip.MustParseAddr("127.0.0.1"), UID: os.Getuid(), PID: os.Getpid(), Program: "facts.test"}
	own.Port = int(netip.MustParseAddrPort(listener.Addr().String()).Port())
	if !slices.Contains(got.Listeners, own) || !slices.Contains(got.Listening, own.Port) {
		t.Errorf("%+v is not in %+v", own, got.Listeners)
	}
	if !slices.ContainsFunc(got.Mounts, func(mount agent.Mount) bool { return mount.Point == "/" && mount.Free > 0 }) {
		t.Errorf("no room on the root: %+v", got.Mounts)
	}
	if got.User.Name == "" || got.User.UID != os.Getuid() {
		t.Errorf("user is %+v", got.User)
	}
}

func TestGatherCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	source := Source{NvidiaSMI: func(ctx context.Context) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}}
	if _, err := source.Gather(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
