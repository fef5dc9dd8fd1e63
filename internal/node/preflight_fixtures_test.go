package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// The names of a Spark's interfaces and RDMA devices on port 0, the two halves of which are p0.
const (
	first, second       = "enp1s0f0np0", "enP2p1s0f0np0"
	firstHCA, secondHCA = "rocep1s0f0", "roceP2p1s0f0"
)

// sparkWith is a healthy DGX Spark, the n-th of a cluster, with addresses on the halves of port 0;
// an empty one leaves its half without.
func sparkWith(n int, addresses ...string) agent.Facts {
	management := netip.MustParsePrefix(fmt.Sprintf("10.1.230.%d/24", 180+n))
	facts := agent.Facts{
		Hostname: fmt.Sprintf("aurora-%d", n+1), Architecture: "arm64", Kernel: "6.17.0-1008-nvidia", DefaultInterface: "enP7s7",
		MachineID: "3d1219c7c4c5404aaa1f6d2a48adfda4", // all of one batch have the same
		User:      agent.User{Name: "aurora", UID: 1000, Home: "/home/aurora", Sudo: "no"},
		Interfaces: []agent.Interface{
			device("lo", true, 0, "127.0.0.1/8"),
			{Name: "docker0", Kind: "bridge", Up: true, MTU: 1500, SpeedMbps: 10_000, MAC: "02:42:0a:00:00:01", Addresses: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}},
			{Name: "wlP9s9", Kind: "wlan", MTU: 1500},
			{Name: "enP7s7", Up: true, MTU: 1500, SpeedMbps: 10_000, MAC: fmt.Sprintf("4c:bb:47:2c:00:%02x", n), Addresses: []netip.Prefix{management}},
			{Name: "enp1s0f1np1", MTU: 1500, PhysicalPort: "p1"}, {Name: "enP2p1s0f1np1", MTU: 1500, PhysicalPort: "p1"},
		},
		Routing: agent.Routing{
			Rules: []agent.Rule{rule(0, 255), rule(32766, 254), rule(32767, 253)},
			Routes: []agent.Route{
				{Table: 254, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("0.0.0.0/0"), Interface: "enP7s7", Gateway: netip.MustParseAddr("10.1.230.1"), Metric: 100},
				connected("enP7s7", management),
			},
		},
		Sysctls: map[string]int{"net.ipv4.ip_forward": 1}, Firewall: agent.Firewall{UFW: "disabled"}, Verbs: []string{"uverbs0", "uverbs1"},
		GPUs: []agent.GPU{{Name: "NVIDIA GB10"}}, Driver: "580.95.05", CUDA: "13.0",
		Toolkit: agent.Toolkit{Programs: []string{"/usr/bin/nvidia-container-runtime-hook"}}, DockerRoot: "/var/lib/docker",
		Memory:  agent.Memory{Total: 127601452 << 10, Available: 117 << 30, Free: 2 << 30, CMATotal: 64 << 20, CMAFree: 60 << 20},
		Mounts:  []agent.Mount{{Point: "/", Type: "ext4", Free: 2e12}, {Point: "/boot/efi", Type: "vfat", Free: 5e8}, {Point: "/mnt/nas", Type: "nfs4", Free: -1}},
		Display: agent.Display{Target: "multi-user.target"}, HostnameAddresses: []netip.Addr{netip.MustParseAddr("127.0.1.1")},
		Listening: []int{22},
	}
	for i, name := range []string{first, second} {
		half := agent.Interface{Name: name, Up: true, MTU: 9000, SpeedMbps: 200_000, PhysicalPort: "p0", MAC: fmt.Sprintf("4c:bb:47:2c:%02x:%02x", i+1, n)}
		hca := agent.RDMADevice{
			Name: []string{firstHCA, secondHCA}[i], Interface: name, Active: true, LinkLayer: "Ethernet", Firmware: "28.45.4028", RateGbps: 200,
			PCI: agent.PCILink{Address: []string{"0000:01:00.0", "0002:01:00.0"}[i], Width: 4, MaxWidth: 16, Speed: 32, MaxSpeed: 32},
		}
		if i < len(addresses) && addresses[i] != "" {
			prefix := netip.MustParsePrefix(addresses[i])
			half.Addresses = append(half.Addresses, prefix)
			hca.GIDs = append(hca.GIDs, agent.GID{Index: 3, Address: prefix.Addr()})
			route := connected(name, prefix)
			route.Metric = 100 + i
			facts.Routing.Routes = append(facts.Routing.Routes, route)
		}
		facts.Interfaces, facts.RDMA = append(facts.Interfaces, half), append(facts.RDMA, hca)
	}
	return facts
}

func rule(priority, table int) agent.Rule {
	return agent.Rule{Priority: priority, Action: agent.RuleLookup, Table: table, LongerThan: -1}
}

// connected is the route that the kernel makes for an address.
func connected(name string, prefix netip.Prefix) agent.Route {
	return agent.Route{Table: 254, Type: agent.RouteUnicast, Destination: prefix.Masked(), Interface: name, Source: prefix.Addr()}
}

// pair makes a cluster of machines known by the addresses on their first halves.
func pair(machines ...agent.Facts) Cluster {
	cluster := Cluster{WeightsDir: "~/models", Claims: true}
	for i, facts := range machines {
		address, _ := firstIPv4(facts.Interfaces[6])
		cluster.Members = append(cluster.Members, Member{Host: fmt.Sprintf("10.1.230.%d", 180+i), Address: address, Facts: facts})
	}
	return cluster
}

// healthy are the ways in which people address a pair of Sparks.
func healthy() map[string]Cluster {
	return map[string]Cluster{
		"a static /24 for each half":  static(),
		"one cable, two halves":       pair(sparkWith(0, "192.168.100.10/24", "192.168.101.10/24"), sparkWith(1, "192.168.100.11/24", "192.168.101.11/24")),
		"a switch and four of them":   pair(sparkWith(0, "10.0.0.1/16", "10.1.0.1/16"), sparkWith(1, "10.0.0.2/16", "10.1.0.2/16"), sparkWith(2, "10.0.0.3/16", "10.1.0.3/16"), sparkWith(3, "10.0.0.4/16", "10.1.0.4/16")),
		"a point-to-point /30":        pair(sparkWith(0, "192.168.200.1/30", "192.168.201.1/30"), sparkWith(1, "192.168.200.2/30", "192.168.201.2/30")),
		"things that look wrong":      lookingWrong(),
		"one half of each port":       pair(sparkWith(0, "192.168.200.12/24"), sparkWith(1, "192.168.200.13/24")),
		"a single node":               pair(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24")),
		"machines that tell little":   pair(silent(sparkWith(0, "192.168.200.12/24")), silent(sparkWith(1, "192.168.200.13/24"))),
		"no address known yet":        {Members: []Member{{Host: "a", Facts: sparkWith(0)}, {Host: "b", Facts: sparkWith(1)}}},
		"a VPN beside, for the phone": pair(withVPN(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24")), sparkWith(1, "192.168.200.13/24", "192.168.201.13/24")),
	}
}

func static() Cluster {
	return pair(sparkWith(0, "192.168.200.12/24", "192.168.201.12/24"), sparkWith(1, "192.168.200.13/24", "192.168.201.13/24"))
}

// linkLocalPair has both halves in 169.254/16, as NVIDIA's playbook makes them: the first half's route
// wins by its metric.
func linkLocalPair() Cluster {
	return pair(sparkWith(0, "169.254.31.7/16", "169.254.80.2/16"), sparkWith(1, "169.254.44.9/16", "169.254.12.66/16"))
}

// lookingWrong has, on one node, what a careless rule would take for a fault.
func lookingWrong() Cluster {
	cluster := static()
	facts := &cluster.Members[1].Facts
	stray := connected("enP7s7", netip.MustParsePrefix("192.168.200.12/32"))
	stray.Dead = true // its cable is out
	facts.Routing.Routes = append(facts.Routing.Routes, stray)
	// A second address of the interface is first in the list, and the route names the right one.
	facts.Interfaces[6].Addresses = append([]netip.Prefix{netip.MustParsePrefix("192.168.200.99/24")}, facts.Interfaces[6].Addresses...)
	facts.Interfaces[5].Addresses = []netip.Prefix{netip.MustParsePrefix("192.168.200.77/24")} // and is down
	facts.User.Home = "/mnt/nas/aurora"                                                        // nobody asked what is free there
	facts.Interfaces[7].SpeedMbps = 0                                                          // its driver does not tell
	facts.RDMA = append(facts.RDMA, agent.RDMADevice{Name: "mlx5_0", Interface: first, Active: true, LinkLayer: "InfiniBand"})
	cluster.WeightsDir = "/models"
	return cluster
}

// silent takes away all that an older kernel or a machine without a Spark's devices does not tell.
func silent(facts agent.Facts) agent.Facts {
	facts.Routing, facts.Sysctls, facts.Firewall, facts.Mounts, facts.RDMA, facts.Verbs = agent.Routing{}, nil, agent.Firewall{}, nil, nil, nil
	facts.MachineID, facts.Driver, facts.CUDA, facts.DockerRoot = "", "", "", ""
	facts.GPUs, facts.Toolkit, facts.Memory = nil, agent.Toolkit{}, agent.Memory{Total: 1 << 30}
	return facts
}

// withVPN adds what wg-quick and Tailscale do: an interface and rules by mark.
func withVPN(facts agent.Facts) agent.Facts {
	prefix := netip.MustParsePrefix("100.64.0.7/32")
	facts.Interfaces = append(facts.Interfaces, agent.Interface{Name: "tailscale0", Kind: "tun", Up: true, MTU: 1280, Addresses: []netip.Prefix{prefix}})
	mark := rule(5210, 254)
	mark.Mark, mark.Mask = 0x80000, 0xff0000
	suppress := rule(5211, 254)
	suppress.LongerThan = 0
	not := rule(5212, 51820)
	not.Not, not.Mark, not.Mask = true, 0xca6c, 0xffffffff
	facts.Routing.Rules = append([]agent.Rule{rule(0, 255), mark, suppress, not}, facts.Routing.Rules[1:]...)
	facts.Routing.Routes = append(facts.Routing.Routes, agent.Route{Table: 51820, Type: agent.RouteUnicast, Destination: netip.MustParsePrefix("0.0.0.0/0"), Interface: "tailscale0"})
	return facts
}

// A healthy machine is no reason for a word, however it is addressed.
func TestHealthyClusters(t *testing.T) {
	for name, cluster := range healthy() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range Preflight(cluster) {
				t.Errorf("%s: %+v", finding.Summary, finding)
			}
			for _, member := range cluster.Members {
				for _, finding := range PreflightOne(member) {
					t.Errorf("%s: %+v", finding.Summary, finding)
				}
			}
		})
	}
}

// A link-local pair works, and will move: one warning, although its halves share a subnet.
func TestLinkLocalPair(t *testing.T) {
	findings := Preflight(linkLocalPair())
	if len(findings) != 1 || findings[0].Row != 11 || findings[0].Severity != Warning || len(findings[0].Hosts) != 2 {
		t.Errorf("got %+v", findings)
	}
	cluster := linkLocalPair()
	cluster.Members[0].Facts.Routing.Routes[3].Metric = 1 // the second half's wins
	if findings = Preflight(cluster); len(findings) != 2 || findings[0].Row != 16 || !strings.Contains(findings[0].Cause, second) {
		t.Errorf("the wrong half: %+v", findings)
	}
}
