package node

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

func device(name string, up bool, speed int, addresses ...string) agent.Interface {
	one := agent.Interface{Name: name, Up: up, MTU: 1500, SpeedMbps: speed}
	for _, address := range addresses {
		one.Addresses = append(one.Addresses, netip.MustParsePrefix(address))
	}
	return one
}

func spark(fabric ...string) agent.Facts {
	return agent.Facts{
		Hostname: "aurora-1", DefaultInterface: "enP7s7",
		Interfaces: []agent.Interface{
			device("lo", true, 0, "127.0.0.1/8"),
			device("docker0", true, 0, "172.17.0.1/16"),
			device("enP2p1s0f0np0", true, 200_000, "192.168.201.12/24"),
			device("enP7s7", true, 10_000, "10.1.230.180/24", "fe80::1/64"),
			device("enp1s0f0np0", true, 200_000, fabric...),
			device("enp1s0f1np1", false, 0),
		},
		RDMA: []agent.RDMADevice{
			{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true},
			{Name: "roceP2p1s0f0", Interface: "enP2p1s0f0np0", Active: true},
		},
		GPUs: []agent.GPU{{Name: "NVIDIA GB10"}}, Driver: "580.95.05",
		Memory: agent.Memory{Total: 127601452 << 10},
	}
}

func TestFabricAddress(t *testing.T) {
	without := func(facts agent.Facts, change func(*agent.Facts)) agent.Facts { change(&facts); return facts }
	cases := []struct {
		name, accepted, want string
		facts                agent.Facts
	}{
		{"the first half of the cabled port", "", "192.168.200.12", spark("192.168.200.12/24")},
		{"the accepted address while it is there", "10.1.230.180", "10.1.230.180", spark("192.168.200.12/24")},
		{"followed when the accepted one is gone", "192.168.200.12", "192.168.200.22", spark("192.168.200.22/24")},
		{"the twin half when the first has none", "", "192.168.201.12", spark()},
		{"never the management network of a node with a fabric", "", "", without(spark(), func(f *agent.Facts) { f.Interfaces[2].Addresses = nil })},
		{"a down interface has no identity", "", "192.168.201.12", without(spark("192.168.200.12/24"), func(f *agent.Facts) { f.Interfaces[4].Up = false })},
		{"by speed without RDMA", "", "192.168.200.12", without(spark("192.168.200.12/24"), func(f *agent.Facts) { f.RDMA = nil })},
		{"the only network of a node without a fabric", "", "10.1.230.180", without(spark(), func(f *agent.Facts) {
			f.RDMA, f.Interfaces = nil, f.Interfaces[:2:2]
			f.Interfaces = append(f.Interfaces, device("enP7s7", true, 10_000, "10.1.230.180/24"))
		})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Observe(c.facts, "10.1.230.180", Accepted{FabricAddress: c.accepted}).FabricAddress; got != c.want {
				t.Errorf("fabric address %q, want %q", got, c.want)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	got := Observe(spark("192.168.200.12/24"), "spark-a.lan", Accepted{})
	want := Observed{Name: "aurora-1", ManagementAddress: "10.1.230.180", FabricAddress: "192.168.200.12", GPUs: 1, Driver: "580.95.05", MemoryGiB: 121}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFollow(t *testing.T) {
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	accepted := &Accepted{FabricAddress: "192.168.200.12", GPUs: 1, Machine: "m1"}
	before := &Accepted{FabricAddress: "192.168.200.12", GPUs: 1}
	cases := []struct {
		name     string
		declared Declared
		before   *Accepted
		seen     Observed
		want     Accepted
		ignored  Ignored
	}{
		{"a new node is taken as it is", Declared{}, nil, Observed{FabricAddress: "192.168.200.12", GPUs: 1}, Accepted{FabricAddress: "192.168.200.12", GPUs: 1}, nil},
		{"a new address is followed", Declared{}, before, Observed{FabricAddress: "192.168.200.22", GPUs: 1}, Accepted{FabricAddress: "192.168.200.22", GPUs: 1}, nil},
		{"a pinned one is not", Declared{FabricAddress: text("192.168.200.12")}, before, Observed{FabricAddress: "192.168.200.22", GPUs: 1}, Accepted{FabricAddress: "192.168.200.12", GPUs: 1}, nil},
		{"a gain of GPUs is followed", Declared{}, before, Observed{FabricAddress: "192.168.200.12", GPUs: 2}, Accepted{FabricAddress: "192.168.200.12", GPUs: 2}, nil},
		{"a loss is not", Declared{}, before, Observed{FabricAddress: "192.168.200.12"}, Accepted{FabricAddress: "192.168.200.12", GPUs: 1}, nil},
		{"unless it is written", Declared{GPUs: number(0)}, before, Observed{FabricAddress: "192.168.200.12"}, Accepted{FabricAddress: "192.168.200.12", GPUs: 0}, nil},
		{"an address that vanished is not followed", Declared{}, before, Observed{GPUs: 1}, Accepted{FabricAddress: "192.168.200.12", GPUs: 1}, nil},
		{"an ignored address stays", Declared{}, before, Observed{FabricAddress: "192.168.200.22", GPUs: 2}, Accepted{FabricAddress: "192.168.200.12", GPUs: 2}, Ignored{KindFabricAddress}},
		{"unless it is written", Declared{FabricAddress: text("192.168.200.22")}, before, Observed{FabricAddress: "192.168.200.22", GPUs: 1}, Accepted{FabricAddress: "192.168.200.22", GPUs: 1}, Ignored{KindFabricAddress}},
		{"an ignored gain stays out", Declared{}, before, Observed{FabricAddress: "192.168.200.12", GPUs: 2}, Accepted{FabricAddress: "192.168.200.12", GPUs: 1}, Ignored{KindGPUCount}},
		{"a new node is that machine", Declared{}, nil, Observed{GPUs: 1, Machine: Machine{Name: "m1"}}, Accepted{GPUs: 1, Machine: "m1"}, nil},
		{"nothing of another machine is followed", Declared{}, accepted, Observed{FabricAddress: "192.168.200.22", GPUs: 2, Machine: Machine{Name: "m2"}}, *accepted, nil},
		{"a machine that cannot be told is the accepted one", Declared{}, accepted, Observed{FabricAddress: "192.168.200.22", GPUs: 1}, Accepted{FabricAddress: "192.168.200.22", GPUs: 1, Machine: "m1"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Follow(c.declared, c.before, c.seen, c.ignored)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsLinesAndMoves(t *testing.T) {
	accepted := Accepted{FabricAddress: "192.168.200.12", GPUs: 1, Machine: "m1"}
	both := Ignored{KindFabricAddress, KindGPUCount}
	cases := []struct {
		name     string
		seen     Observed
		problems []string
		lines    []string
		moved    string
		ignored  Ignored
	}{
		{"nothing", Observed{Name: "aurora-2", FabricAddress: "192.168.200.12", GPUs: 1}, nil, []string{}, "", nil},
		{"another address", Observed{Name: "aurora-2", FabricAddress: "192.168.200.22", GPUs: 1},
			[]string{"Host aurora-2 (10.1.230.181): fabric address is 192.168.200.22, not 192.168.200.12"},
			[]string{"aurora-2: fabric address is 192.168.200.22, expected 192.168.200.12"},
			"The plan was made for fabric address 192.168.200.12, the host now has 192.168.200.22.", nil},
		{"no address", Observed{Name: "aurora-2", GPUs: 1},
			[]string{"Host aurora-2 (10.1.230.181): fabric address is gone, not 192.168.200.12"},
			[]string{"aurora-2: fabric address is gone, expected 192.168.200.12"},
			"The plan was made for fabric address 192.168.200.12, the host now has none.", nil},
		{"a GPU lost", Observed{Name: "aurora-2", FabricAddress: "192.168.200.12"},
			[]string{"Host aurora-2 (10.1.230.181): 0 of 1 GPUs present"},
			[]string{"aurora-2: 0 GPUs present, expected 1"},
			"The plan was made for 1 GPUs, the host now has 0.", nil},
		{"a GPU gained", Observed{Name: "aurora-2", FabricAddress: "192.168.200.12", GPUs: 2}, nil,
			[]string{}, "", nil},
		{"nvidia-smi fails", Observed{Name: "aurora-2", FabricAddress: "192.168.200.12", GPUError: "driver not loaded"},
			[]string{"Host aurora-2 (10.1.230.181): 0 of 1 GPUs present"},
			[]string{"aurora-2: 0 GPUs present, expected 1 (nvidia-smi: driver not loaded)"},
			"The plan was made for 1 GPUs, the host now has 0.", nil},
		{"all that is ignored", Observed{Name: "aurora-2", FabricAddress: "192.168.200.22"}, nil, []string{}, "", both},
		{"one of two ignored", Observed{Name: "aurora-2", FabricAddress: "192.168.200.22"},
			[]string{"Host aurora-2 (10.1.230.181): 0 of 1 GPUs present"},
			[]string{"aurora-2: 0 GPUs present, expected 1"},
			"The plan was made for 1 GPUs, the host now has 0.", Ignored{KindFabricAddress}},
		{"another machine", Observed{Name: "aurora-9", FabricAddress: "192.168.200.22", Machine: Machine{Name: "m2"}},
			[]string{"Host aurora-9 (10.1.230.181): another machine answers"},
			[]string{"aurora-9: answers in place of the accepted machine (network card m2, expected m1)"},
			"The plan was made for the machine with the network card m1, now one with m2 answers.", both},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var summaries []string
			for _, problem := range Problems(accepted, c.seen, "10.1.230.181", "none", c.ignored) {
				summaries = append(summaries, problem.Summary)
			}
			if diff := cmp.Diff(c.problems, summaries); diff != "" {
				t.Error("problems:", diff)
			}
			if diff := cmp.Diff(c.lines, Lines(accepted, c.seen, c.ignored)); diff != "" {
				t.Error("lines:", diff)
			}
			if got := Moved(accepted, c.seen, c.ignored); got != c.moved {
				t.Errorf("moved %q, want %q", got, c.moved)
			}
		})
	}
}

func TestUnlisted(t *testing.T) {
	none := 0
	failing := Observed{Name: "aurora-2", GPUError: "driver not loaded"}
	for name, test := range map[string]struct {
		declared Declared
		seen     Observed
		problem  bool
	}{
		"a list":             {Declared{}, Observed{}, false},
		"no list":            {Declared{}, failing, true},
		"declared as absent": {Declared{GPUs: &none}, failing, false},
	} {
		if got := Unlisted(test.declared, test.seen, "10.1.230.181"); (got != nil) != test.problem {
			t.Errorf("%s: %v", name, got)
		}
	}
}
