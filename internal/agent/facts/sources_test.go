package facts

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

func TestParseSMIReport(t *testing.T) {
	gb10, err := os.ReadFile("testdata/nvidia-smi-q.txt")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		output string
		want   SMIReport
	}{
		"GB10": {string(gb10), SMIReport{CUDA: "13.0", MemoryMiB: []int64{0}, Processes: []agent.GPUProcess{
			{PID: 3104, Type: "G", Name: "/usr/lib/xorg/Xorg", MemoryMiB: 43},
			{PID: 81230, Type: "C", Name: "VLLM::Worker_TP0", MemoryMiB: 98214},
		}}},
		"idle": {"CUDA Version : 13.0\nGPU 0000000F:01:00.0\n    Processes : None\n", SMIReport{CUDA: "13.0", MemoryMiB: []int64{0}}},
		"own memory, two GPUs": {
			"CUDA Version : 12.8\nGPU 1:0\n    FB Memory Usage\n        Total : 24564 MiB\n    BAR1 Memory Usage\n        Total : 256 MiB\nGPU 2:0\n    FB Memory Usage\n        Total : 8192 MiB\n" +
				"    Processes\n        Process ID : 7\n            Type : C\n            Name : [Not Found]\n            Used GPU Memory : N/A\n",
			SMIReport{CUDA: "12.8", MemoryMiB: []int64{24564, 8192}, Processes: []agent.GPUProcess{{GPU: 1, PID: 7, Type: "C", Name: "[Not Found]"}}},
		},
		"the table instead": {"| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0     |\n", SMIReport{CUDA: "13.0"}},
		"driver failure":    {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", SMIReport{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseSMIReport(test.output)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseListening(t *testing.T) {
	const text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 26171 1 0 100 0 0 10 0\n" +
		"   1: B4E6010A:0016 0DC8A8C0:D2F4 01 00000000:00000000 02:000A7214 00000000     0        0 31021 2 0 20 4 30 10 -1\n"
	const text6 = "  sl  local_address                         remote_address                        st\n" +
		"   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000\n" +
		"   1: 0000000000000000FFFF00000CC8A8C0:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1\n"
	want := []Socket{
		{Listener: agent.Listener{Address: netip.MustParseAddr("127.0.0.1"), Port: 6379, UID: 1000}, Inode: 26171},
		{Listener: agent.Listener{Address: netip.MustParseAddr("::"), Port: 8000}},
		{Listener: agent.Listener{Address: netip.MustParseAddr("::ffff:192.168.200.12"), Port: 22}, Inode: 99},
	}
	got := append(ParseListening(text), ParseListening(text6)...)
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseMountinfo(t *testing.T) {
	const text = `22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
23 22 0:21 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
24 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
30 22 0:27 / /run/user/1000 rw,nosuid,nodev,relatime shared:300 - tmpfs tmpfs rw
31 22 259:1 / /boot/efi rw,relatime shared:29 - vfat /dev/nvme0n1p1 rw
40 22 7:1 / /snap/core22/1 ro,nodev,relatime shared:40 - squashfs /dev/loop1 ro
41 22 0:50 / /var/lib/docker/overlay2/0f/merged rw,relatime shared:9 - overlay overlay rw,lowerdir=/a - b
42 22 8:1 / /mnt/my\040models ro,relatime - xfs /dev/sda1 ro
43 22 0:60 / /mnt/nas rw,relatime - nfs4 nas:/models rw,vers=4.2
44 22 0:61 / /proc/keys rw,nosuid - tmpfs tmpfs rw
cut short
`
	want := []agent.Mount{
		{Point: "/", Type: "ext4", Free: -1}, {Point: "/boot/efi", Type: "vfat", Free: -1},
		{Point: "/mnt/my models", Type: "xfs", ReadOnly: true, Free: -1}, {Point: "/mnt/nas", Type: "nfs4", Free: -1},
	}
	if diff := cmp.Diff(want, ParseMountinfo(text)); diff != "" {
		t.Error(diff)
	}
}

func TestParseRayCommand(t *testing.T) {
	tests := map[string]struct {
		kind, cmdline string
		want          agent.RayProcess
	}{
		"raylet of Ray 2.60": {"raylet", "/ray/raylet\x00--raylet_socket_name=/tmp/ray/s\x00--node_ip_address=192.168.200.12\x00--gcs-address=192.168.200.12:6379\x00",
			agent.RayProcess{Kind: "raylet", NodeAddress: "192.168.200.12", Cluster: "192.168.200.12:6379"}},
		"gcs": {"gcs_server", "/ray/gcs_server\x00--log_dir=/tmp\x00--gcs_server_port=6379\x00--node-ip-address=10.1.230.180\x00",
			agent.RayProcess{Kind: "gcs_server", NodeAddress: "10.1.230.180", Cluster: "10.1.230.180:6379"}},
		"not readable": {"raylet", "", agent.RayProcess{Kind: "raylet"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseRayCommand(test.kind, test.cmdline)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSmallTexts(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	inner := strings.Repeat("f", 64)
	tests := map[string]struct{ got, want string }{
		"systemd cgroup":          {ParseCgroup("0::/system.slice/docker-" + id + ".scope\n"), id},
		"cgroupfs":                {ParseCgroup("12:memory:/docker/" + id + "\n0::/docker/" + id + "\n"), id},
		"podman":                  {ParseCgroup("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container\n"), id},
		"a container in another":  {ParseCgroup("0::/docker/" + id + "/docker/" + inner + "\n"), inner},
		"no container":            {ParseCgroup("0::/user.slice/user-1000.slice/session-4.scope\n"), ""},
		"policy":                  {ParsePolicy("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n"), "DROP"},
		"policy refused":          {ParsePolicy("iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)\n"), ""},
		"ufw":                     {ParseSettings("# on boot?\nENABLED=yes\nLOGLEVEL=low\n")["ENABLED"], "yes"},
		"ufw's default":           {ParseSettings("IPV6=yes\nDEFAULT_INPUT_POLICY=\"DROP\"\n")["DEFAULT_INPUT_POLICY"], "DROP"},
		"wireless":                {ParseDeviceType("DEVTYPE=wlan\nINTERFACE=wlP9s9\nIFINDEX=3\n"), "wlan"},
		"Ethernet":                {ParseDeviceType("INTERFACE=enP7s7\nIFINDEX=2\n"), ""},
		"environment":             {ParseEnviron("A=1\x00VLLM_HOST_IP=10.0.0.1\x00B=", "VLLM_HOST_IP"), "10.0.0.1"},
		"environment without it":  {ParseEnviron("XVLLM_HOST_IP=10.0.0.1", "VLLM_HOST_IP"), ""},
		"IPv4 of /proc/net":       {ParseHexAddress("0CC8A8C0").String(), "192.168.200.12"},
		"no address of /proc/net": {ParseHexAddress("0CC8A8").String(), "invalid IP"},
		"not hexadecimal":         {ParseHexAddress("zz").String(), "invalid IP"},
	}
	for name, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: got %q, want %q", name, test.got, test.want)
		}
	}
}

func TestParseHosts(t *testing.T) {
	const text = "127.0.0.1 localhost\n127.0.1.1\tspark-a.local spark-a # by the installer\n::1 spark-a\n#10.0.0.1 spark-a\n192.168.200.12 spark-a\n"
	want := []netip.Addr{netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("192.168.200.12")}
	if diff := cmp.Diff(want, ParseHosts(text, "spark-a"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	if got := ParseHosts(text, ""); got != nil {
		t.Errorf("no name has %v", got)
	}
}

func TestParseDaemonConfig(t *testing.T) {
	tests := map[string]struct {
		text   string
		want   DaemonConfig
		failed bool
	}{
		"none":    {"", DaemonConfig{Root: "/var/lib/docker"}, false},
		"toolkit": {`{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}`, DaemonConfig{Root: "/var/lib/docker", NVIDIA: true}, false},
		"root":    {`{"data-root": "/data/docker", "exec-opts": ["native.cgroupdriver=cgroupfs"]}`, DaemonConfig{Root: "/data/docker"}, false},
		"broken":  {`{"data-root": `, DaemonConfig{Root: "/var/lib/docker"}, true},
	}
	for name, test := range tests {
		got, err := ParseDaemonConfig(test.text)
		if got != test.want || (err != nil) != test.failed {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestParseLink(t *testing.T) {
	for text, want := range map[string]int{"200 Gb/sec (4X HDR)": 200, "40 Gb/sec (4X QDR)": 40, "": 0, "-1 Gb/sec": 0, "NaN Gb/sec": 0} {
		if got := ParseRate(text); got != want {
			t.Errorf("rate %q: got %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]float64{"32.0 GT/s PCIe": 32, "2.5 GT/s PCIe": 2.5, "Unknown": 0, "": 0} {
		if got := ParseTransfers(text); got != want {
			t.Errorf("speed %q: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]int{"4": 4, "16": 16, "255": 0, "0": 0, "x": 0} {
		if got := ParseWidth(text); got != want {
			t.Errorf("width %q: got %d, want %d", text, got, want)
		}
	}
}

// TestOddAnswers has nothing but the required files, and programs that fail: the look is whole.
func TestOddAnswers(t *testing.T) {
	source := odd(t)
	got, err := source.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/etc/docker/daemon.json is not as expected: unexpected end of JSON input",
		"iptables -S FORWARD: exit status 4", "nvidia-smi -q: exit status 9", "no ports today", "no routes today",
	}
	if diff := cmp.Diff(want, got.Unread, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if got.Hostname != "spark-a" || got.Memory.Total == 0 || got.User.Sudo != "yes" {
		t.Errorf("got %+v", got)
	}
	source.Root = t.TempDir()
	if _, err := source.Gather(t.Context()); err == nil {
		t.Error("no failure without /proc/meminfo")
	}
}

func FuzzParseReports(f *testing.F) {
	report, err := os.ReadFile("testdata/nvidia-smi-q.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(report))
	f.Add("22 1 259:2 / /my\\040models ro,relatime - ext4 /dev/nvme0n1p2 rw\n")
	f.Add("/ray/gcs_server\x00--gcs_server_port=6379\x00--node-ip-address=10.1.230.180\x00")
	f.Add("127.0.1.1\tspark-a\n")
	f.Add(`{"data-root": "/data", "runtimes": {"nvidia": {}}}`)
	f.Add("-P FORWARD DROP\n")
	f.Add("200 Gb/sec (4X HDR)")
	f.Fuzz(func(t *testing.T, text string) {
		for _, process := range ParseSMIReport(text).Processes {
			if process.PID <= 0 || process.MemoryMiB < 0 {
				t.Errorf("process %+v", process)
			}
		}
		for _, mount := range ParseMountinfo(text) {
			if mount.Type == "" {
				t.Errorf("mount %+v", mount)
			}
		}
		for _, address := range ParseHosts(text, "spark-a") {
			if !address.Is4() {
				t.Errorf("address %v", address)
			}
		}
		if config, err := ParseDaemonConfig(text); err == nil && config.Root == "" {
			t.Error("no data folder")
		}
		if id := ParseCgroup(text); id != "" && len(id) != 64 {
			t.Errorf("container %q", id)
		}
		if rate := ParseRate(text); rate < 0 {
			t.Errorf("rate %d", rate)
		}
		if speed := ParseTransfers(text); !(speed >= 0) {
			t.Errorf("speed %v", speed)
		}
		ParseWidth(text)
		ParsePolicy(text)
		ParseSettings(text)
		ParseDeviceType(text)
		ParseRayCommand("gcs_server", text)
		ParseEnviron(text, "VLLM_HOST_IP")
		ParseHexAddress(text)
	})
}

// odd is a machine on which all that may fail does.
func odd(t *testing.T) Source {
	root := t.TempDir()
	write(t, root, map[string]string{
		"/proc/meminfo": "MemTotal: 1000 kB\n", "/etc/docker/daemon.json": "{",
	})
	return Source{
		Root: root, Hostname: "spark-a", Kernel: "6.17", User: &agent.User{Name: "root"},
		Interfaces: func() ([]agent.Interface, error) { return nil, nil },
		Routing:    func() (agent.Routing, error) { return agent.Routing{}, errors.New("no routes today") },
		Listening:  func() ([]int, error) { return nil, errors.New("no ports today") },
		Run:        failing,
	}
}
