package facts

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
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
	for name, text := range map[string]string{
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
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGather(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	interfaces := []agent.Interface{{Name: "enp1s0f0np0", Up: true, MTU: 9000, SpeedMbps: 200000, PhysicalPort: "p0",
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.200.12/24")}}}
	user := agent.User{Name: "aurora", UID: 1000, GID: 1000, Home: "/home/aurora", Groups: []string{"aurora", "docker"}}
	source := Source{
		Root: spark(t), Hostname: "spark-a", Architecture: "arm64", Kernel: "6.17.0-1008-nvidia", User: &user,
		Interfaces: func() ([]agent.Interface, error) { return interfaces, nil },
		NvidiaSMI:  func(context.Context) (string, error) { return "0, NVIDIA GB10, GPU-1, 580.95.05\n", nil },
		Now:        func() time.Time { return now },
	}
	got, err := source.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Facts{
		Hostname: "spark-a", Architecture: "arm64", Kernel: "6.17.0-1008-nvidia", OS: "DGX OS 7.3.1", Time: now,
		User: user, Interfaces: interfaces, DefaultInterface: "enP7s7",
		RDMA: []agent.RDMADevice{
			{Name: "roceP2p1s0f0", Interface: "enP2p1s0f0np0", GIDs: []agent.GID{}},
			{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true,
				GIDs: []agent.GID{{Index: 3, Address: netip.MustParseAddr("192.168.200.12")}}},
		},
		GPUs: []agent.GPU{{Name: "NVIDIA GB10", UUID: "GPU-1"}}, Driver: "580.95.05",
		Memory: agent.Memory{Total: 1000 << 10, Available: 900 << 10, Free: 100 << 10}, Listening: []int{22, 8000},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
}

func TestGatherOnThisMachine(t *testing.T) {
	source := Source{NvidiaSMI: func(context.Context) (string, error) { return "", errors.New("none here") }}
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
