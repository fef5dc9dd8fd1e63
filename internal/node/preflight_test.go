package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// broken is the static pair with one thing changed, and the one finding that comes of it. The rest of
// a summary or cause may follow the words.
type broken struct {
	name     string
	change   func(*Cluster)
	row      int
	severity Severity
	hosts    string // a, b: which of the pair
	says     []string
}

// on changes the facts of node b.
func on(change func(*agent.Facts)) func(*Cluster) {
	return func(cluster *Cluster) { change(&cluster.Members[1].Facts) }
}

// readdress gives node b another address on its first half.
func readdress(prefix string) func(*Cluster) {
	return func(cluster *Cluster) {
		fresh := pair(sparkWith(0), sparkWith(1, prefix, "192.168.201.13/24"))
		cluster.Members[1] = fresh.Members[1]
	}
}

func brokenClusters() []broken {
	return []broken{
		{"one address twice", readdress("192.168.200.12/24"), 2, Error, "ab", []string{"aurora-1 and aurora-2 have one identity address", "192.168.200.12"}},
		{"identity on Wi-Fi", on(func(f *agent.Facts) { f.Interfaces[6].Kind = "wlan" }), 3, Warning, "b", []string{"enp1s0f0np0 is Wi-Fi"}},
		{"cable out", on(func(f *agent.Facts) { f.Interfaces[6].Up = false }), 7, Error, "b", []string{"aurora-2: interface enp1s0f0np0 is down", "192.168.200.13"}},
		{"two halves in one subnet", func(cluster *Cluster) {
			*cluster = pair(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24"), sparkWith(1, "192.168.200.13/24", "192.168.200.23/24"))
		}, 10, Error, "b", []string{"aurora-2: enp1s0f0np0 and enP2p1s0f0np0 are in one subnet", "192.168.200.23", "hangs", "Give enP2p1s0f0np0 a subnet of its own"}},
		{"address lost", on(func(f *agent.Facts) { f.Interfaces[6].Addresses = nil }), 12, Error, "b", []string{"aurora-2 does not have 192.168.200.13", "it has 172.17.0.1 on docker0, 10.1.230.181 on enP7s7"}},
		{"another subnet", readdress("192.168.210.13/24"), 13, Error, "ab", []string{"aurora-1 and aurora-2 are in different subnets", "192.168.200.0/24, on enp1s0f0np0", "192.168.210.13"}},
		{"a narrower subnet on one side", readdress("192.168.200.130/25"), 13, Error, "ab", []string{"192.168.200.128/25"}},
		{"ufw", on(func(f *agent.Facts) { f.Firewall = agent.Firewall{UFW: "enabled", Input: "DROP"} }), 13, Warning, "b", []string{"ufw is on", "sudo ufw allow in on enp1s0f0np0 from 192.168.200.0/24"}},
		{"relay that forwards nothing", ring(func(f *agent.Facts) { f.Sysctls["net.ipv4.ip_forward"] = 0 }), 15, Error, "b", []string{"aurora-3 does not pass on what aurora-2 sends to aurora-1", "ip_forward = 0"}},
		{"relay that drops", ring(func(f *agent.Facts) { f.Firewall.Forward = "DROP" }), 15, Warning, "b", []string{"policy of FORWARD"}},
		{"a route by the management network", on(func(f *agent.Facts) {
			f.Routing.Routes = append(f.Routing.Routes, agent.Route{Table: 254, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("192.168.200.12/32"), Interface: "enP7s7", Gateway: netip.MustParseAddr("10.1.230.1")})
		}), 16, Error, "b", []string{"aurora-2: traffic to aurora-1 does not leave by enp1s0f0np0", "leave by enP7s7 via 10.1.230.1 with the source 10.1.230.181", "ip route get 192.168.200.12"}},
		{"another source", on(func(f *agent.Facts) {
			f.Interfaces[6].Addresses = slices.Insert(f.Interfaces[6].Addresses, 0, netip.MustParsePrefix("192.168.200.99/24"))
			f.Routing.Routes[2].Source = netip.MustParseAddr("192.168.200.99")
		}), 16, Error, "b", []string{"with the source 192.168.200.99"}},
		{"bound traffic by another table", on(func(f *agent.Facts) {
			from := rule(100, 7)
			from.From = netip.MustParsePrefix("192.168.200.13/32")
			f.Routing.Rules = slices.Insert(f.Routing.Rules, 1, from)
			f.Routing.Routes = append(f.Routing.Routes, agent.Route{Table: 7, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("0.0.0.0/0"), Interface: "enP7s7"})
		}), 16, Error, "b", []string{"leave by enP7s7"}},
		{"blackhole", on(func(f *agent.Facts) {
			f.Routing.Routes = append(f.Routing.Routes, agent.Route{Table: 254, Type: agent.RouteBlackhole, Destination: netip.MustParsePrefix("192.168.200.12/32")})
		}), 16, Error, "b", []string{"are dropped (blackhole)"}},
		{"no route", on(func(f *agent.Facts) { f.Routing.Routes = f.Routing.Routes[1:2] }), 16, Error, "b", []string{"have no route"}},
		{"identity on a VPN", on(func(f *agent.Facts) { f.Interfaces[6].Kind = "tun" }), 19, Error, "b", []string{"enp1s0f0np0 is a tunnel"}},
		{"another Ray", on(func(f *agent.Facts) {
			f.Rays = []agent.RayProcess{{PID: 77, Kind: "raylet", NodeAddress: "10.1.230.181", Cluster: "10.1.230.180:6379"}}
		}), 24, Warning, "b", []string{"another Ray is running", "raylet (process 77, outside of any container, known as 10.1.230.181, of the cluster at 10.1.230.180:6379)"}},
		{"no GID for the address", on(func(f *agent.Facts) { f.RDMA[0].GIDs[0].Address = netip.MustParseAddr("192.168.200.22") }), 34, Error, "b", []string{"rocep1s0f0 has no RoCE v2 entry for 192.168.200.13"}},
		{"second half without address", func(cluster *Cluster) { *cluster = pair(static().Members[0].Facts, sparkWith(1, "192.168.200.13/24")) },
			40, Warning, "b", []string{"half of the link is unused", "roceP2p1s0f0: enP2p1s0f0np0 has no IPv4 address"}},
		{"second half at another GID", on(func(f *agent.Facts) { f.RDMA[1].GIDs[0].Index = 5 }), 40, Warning, "b", []string{"roceP2p1s0f0: its GID 3 is no RoCE v2 entry"}},
		{"MTU", on(func(f *agent.Facts) { f.Interfaces[6].MTU = 1500 }), 42, Error, "ab", []string{"different MTUs", "MTU 1500 on aurora-2 (enp1s0f0np0), 9000 on aurora-1 (enp1s0f0np0)"}},
		{"MTU of the second half", on(func(f *agent.Facts) { f.Interfaces[7].MTU = 1500 }), 42, Error, "ab", []string{"1500 on aurora-2 (enP2p1s0f0np0)"}},
		{"drivers", on(func(f *agent.Facts) { f.Driver = "590.44" }), 52, Warning, "ab", []string{"580.95.05 on aurora-1, 590.44 on aurora-2"}},
		{"architectures", on(func(f *agent.Facts) { f.Architecture = "amd64" }), 53, Error, "ab", []string{"amd64 on aurora-2, arm64 on aurora-1"}},
		{"GPU in use", on(func(f *agent.Facts) {
			f.GPUProcesses = []agent.GPUProcess{{PID: 5, Type: "G", Name: "Xorg"}, {PID: 9, Type: "C", Name: "ollama", MemoryMiB: 20480}}
		}), 66, Warning, "b", []string{"the GPU is in use", "Process 9 (ollama) computes on GPU 0 with 20.0 GiB"}},
		{"homes", on(func(f *agent.Facts) { f.User.Home = "/home/nvidia" }), 102, Error, "ab", []string{"/home/aurora on aurora-1, /home/nvidia on aurora-2"}},
		{"one machine twice", on(func(f *agent.Facts) { f.Interfaces[3].MAC = "4c:bb:47:2c:00:00" }), 104, Error, "ab", []string{"10.1.230.180 and 10.1.230.181 are one machine", "4c:bb:47:2c:00:00"}},
	}
}

// ring is three nodes, of which b reaches a through c.
func ring(change func(*agent.Facts)) func(*Cluster) {
	return func(cluster *Cluster) {
		*cluster = pair(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24"), sparkWith(1, "192.168.200.13/24", "192.168.201.13/24"), sparkWith(2, "192.168.200.14/24", "192.168.201.14/24"))
		through := connected(first, netip.MustParsePrefix("192.168.200.12/32"))
		through.Source, through.Gateway = netip.Addr{}, netip.MustParseAddr("192.168.200.14")
		cluster.Members[1].Facts.Routing.Routes = append(cluster.Members[1].Facts.Routing.Routes, through)
		change(&cluster.Members[2].Facts)
	}
}

func brokenMachines() []broken {
	return []broken{
		{"CMA", on(func(f *agent.Facts) { f.Memory.CMAFree, f.Kernel = 80<<20, "7.0.0-1019-nvidia" }), 37, Warning, "b", []string{"CmaFree is 80 MiB and CmaTotal 64 MiB with kernel 7.0.0-1019-nvidia", "kho=off"}},
		{"no device files", on(func(f *agent.Facts) { f.Verbs = nil }), 38, Warning, "b", []string{"/dev/infiniband is empty"}},
		{"PCIe 1", on(func(f *agent.Facts) { f.RDMA[0].PCI.Speed = 2.5 }), 39, Warning, "b", []string{"rocep1s0f0 runs below its speed", "x4 at 2.5 GT/s, about 10 Gb/s", "Cut the power"}},
		{"two lanes", on(func(f *agent.Facts) { f.RDMA[1].PCI.Width = 2 }), 40, Warning, "b", []string{"roceP2p1s0f0", "x2 at 32 GT/s, about 63 Gb/s", "fwupdmgr"}},
		{"100 Gb/s at the switch", on(func(f *agent.Facts) { f.Interfaces[6].SpeedMbps = 100_000 }), 41, Warning, "b", []string{"enp1s0f0np0 has 100 Gb/s"}},
		{"no toolkit", on(func(f *agent.Facts) { f.Toolkit = agent.Toolkit{} }), 49, Warning, "b", []string{"nvidia-ctk runtime configure"}},
		{"desktop", on(func(f *agent.Facts) { f.Display.Servers = []string{"Xorg", "gnome-shell"} }), 56, Warning, "b", []string{"Xorg, gnome-shell draws on the GPU"}},
		{"disk", on(func(f *agent.Facts) {
			f.Mounts = append(f.Mounts, agent.Mount{Point: "/var/lib/docker", Type: "xfs", Free: 300 << 20})
		}), 67, Warning, "b", []string{"300 MiB are left on /var/lib/docker (xfs)"}},
		{"clock ahead", on(func(f *agent.Facts) { f.ClockOffset = 95 * time.Second }), 101, Warning, "b", []string{"It is 1m35s ahead of this machine's"}},
		{"clock behind", on(func(f *agent.Facts) { f.ClockOffset = -time.Hour }), 101, Warning, "b", []string{"It is 1h0m0s behind this machine's"}},
		{"override", on(func(f *agent.Facts) { f.DRMOverride = true }), 105, Warning, "b", []string{"about 62 of 121 GiB"}},
	}
}

func TestPreflight(t *testing.T) {
	for _, test := range brokenClusters() {
		t.Run(test.name, func(t *testing.T) {
			cluster := static()
			test.change(&cluster)
			test.check(t, Preflight(cluster))
		})
	}
}

func TestPreflightOne(t *testing.T) {
	for _, test := range brokenMachines() {
		t.Run(test.name, func(t *testing.T) {
			cluster := static()
			test.change(&cluster)
			if findings := PreflightOne(cluster.Members[0]); len(findings) > 0 {
				t.Errorf("the other one: %+v", findings)
			}
			test.check(t, PreflightOne(cluster.Members[1]))
			if findings := Preflight(cluster); len(findings) > 0 {
				t.Errorf("said twice: %+v", findings)
			}
		})
	}
}

func (b broken) check(t *testing.T, findings []Finding) {
	t.Helper()
	var want []string
	for _, letter := range b.hosts {
		want = append(want, fmt.Sprintf("10.1.230.%d", 180+letter-'a'))
	}
	if len(findings) != 1 {
		t.Fatalf("%d findings: %+v", len(findings), findings)
	}
	one := findings[0]
	if one.Row != b.row || one.Severity != b.severity || one.Fix == "" || !cmp.Equal(one.Hosts, want) {
		t.Errorf("got %+v", one)
	}
	for _, words := range b.says {
		if !strings.Contains(one.Summary+"\n"+one.Cause+"\n"+one.Fix, words) {
			t.Errorf("%q is not in %+v", words, one)
		}
	}
}

// What the provider itself runs, and a cluster that stands already, are no intruders.
func TestOwnProcesses(t *testing.T) {
	container := strings.Repeat("ab", 32)
	cluster := static()
	member := &cluster.Members[1]
	member.Facts.Rays = []agent.RayProcess{{PID: 7, Kind: "raylet", Container: container}}
	member.Facts.GPUProcesses = []agent.GPUProcess{{PID: 8, Type: "C", Container: container}}
	if findings := Preflight(cluster); len(findings) != 2 {
		t.Errorf("another's: %+v", findings)
	}
	member.Ours = []string{container}
	if findings := Preflight(cluster); len(findings) > 0 {
		t.Errorf("ours: %+v", findings)
	}
	member.Ours, cluster.Claims = nil, false
	if findings := Preflight(cluster); len(findings) > 0 {
		t.Errorf("nothing is claimed: %+v", findings)
	}
}

func TestErrorsFirst(t *testing.T) {
	cluster := static()
	cluster.Members[0].Facts.Driver = "1"
	cluster.Members[1].Facts.Firewall = agent.Firewall{UFW: "enabled", Input: "DROP"}
	cluster.Members[1].Facts.Interfaces[6].MTU = 1500
	var got []int
	for _, finding := range Preflight(cluster) {
		got = append(got, finding.Row)
	}
	if diff := cmp.Diff([]int{42, 13, 52}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWays(t *testing.T) {
	facts := withVPN(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24"))
	facts.Routing.Routes = append(facts.Routing.Routes,
		agent.Route{Table: 254, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("10.9.0.0/16"), Interface: first, Gateway: netip.MustParseAddr("192.168.200.13"), Metric: 9},
		agent.Route{Table: 254, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("10.9.0.0/16"), Interface: second, Gateway: netip.MustParseAddr("192.168.201.13"), Metric: 9},
		agent.Route{Table: 254, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("10.9.0.0/16"), Interface: "enP7s7", Metric: 50},
		agent.Route{Table: 255, Type: agent.RouteLocal, Destination: netip.MustParsePrefix("192.168.200.12/32"), Interface: first},
	)
	by := func(name, source, gateway string) Way {
		way := Way{Type: agent.RouteUnicast, Interface: name, Source: netip.MustParseAddr(source)}
		if gateway != "" {
			way.Gateway = netip.MustParseAddr(gateway)
		}
		return way
	}
	tests := map[string]struct {
		from, to string
		want     []Way
	}{
		"directly":          {"", "192.168.200.13", []Way{by(first, "192.168.200.12", "")}},
		"several next hops": {"", "10.9.1.1", []Way{by(first, "192.168.200.12", "192.168.200.13"), by(second, "192.168.201.12", "192.168.201.13")}},
		"by the VPN, as wg-quick suppresses the default route": {"", "8.8.8.8", []Way{by("tailscale0", "100.64.0.7", "")}},
		"bound":   {"192.168.201.12", "192.168.200.13", []Way{by(first, "192.168.201.12", "")}},
		"its own": {"", "192.168.200.12", []Way{{Type: agent.RouteLocal, Interface: first, Source: netip.MustParseAddr("192.168.200.12")}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, _ := netip.ParseAddr(test.from)
			got := Ways(facts, from, netip.MustParseAddr(test.to))
			if !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	facts.Routing.Rules[1].Mask, facts.Routing.Rules[1].Other = 0, "uidrange"
	if got := Ways(facts, netip.Addr{}, netip.MustParseAddr("192.168.200.13")); got != nil {
		t.Errorf("decided by a user id: %+v", got)
	}
}

func TestMountOf(t *testing.T) {
	facts := agent.Facts{Mounts: []agent.Mount{{Point: "/", Type: "ext4"}, {Point: "/data", Type: "xfs"}, {Point: "/data", Type: "btrfs"}, {Point: "/home", Type: "ext4", Free: 7}}}
	for folder, want := range map[string]string{"/data/models": "btrfs", "/database": "ext4", "/home": "ext4", "~/models": ""} {
		if got, _ := MountOf(facts, folder); got.Type != want {
			t.Errorf("%s: got %+v", folder, got)
		}
	}
}
