package identity

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// spark is a DGX Spark with one cable in port 0 and both halves addressed.
func spark() agent.Facts {
	return agent.Facts{
		Hostname: "aurora-1",
		Interfaces: []agent.Interface{
			{Name: "lo", Up: true, Addresses: prefixes("127.0.0.1/8")},
			{Name: "enP7s7", Up: true, Addresses: prefixes("10.1.230.180/24")},
			{Name: "enp1s0f0np0", Up: true, PhysicalPort: "p0", Addresses: prefixes("192.168.200.12/24", "fe80::1/64")},
			{Name: "enP2p1s0f0np0", Up: true, PhysicalPort: "p0", Addresses: prefixes("192.168.201.12/24")},
			{Name: "enp1s0f1np1", PhysicalPort: "p1", Addresses: prefixes("192.168.210.12/24")},
		},
		RDMA: []agent.RDMADevice{
			{Name: "rocep1s0f0", Interface: "enp1s0f0np0", Active: true, GIDs: gids(3, "192.168.200.12")},
			{Name: "roceP2p1s0f0", Interface: "enP2p1s0f0np0", Active: true, GIDs: gids(3, "192.168.201.12")},
			{Name: "rocep1s0f1", Interface: "enp1s0f1np1"},
		},
	}
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, one := range list {
		out = append(out, netip.MustParsePrefix(one))
	}
	return out
}

func gids(index int, address string) []agent.GID {
	return []agent.GID{{Index: index, Address: netip.MustParseAddr(address)}}
}

func TestResolve(t *testing.T) {
	both := Identity{
		Address: "192.168.200.12", Interface: "enp1s0f0np0", GIDIndex: 3,
		HCAs: []string{"rocep1s0f0", "roceP2p1s0f0"}, LeftOut: map[string]string{},
	}
	tests := map[string]struct {
		change func(*agent.Facts)
		want   func(*Identity)
	}{
		"both halves": {},
		"GID moved after a reboot": {
			change: func(f *agent.Facts) {
				f.RDMA[0].GIDs = gids(5, "192.168.200.12")
				f.RDMA[1].GIDs = gids(5, "192.168.201.12")
			},
			want: func(id *Identity) { id.GIDIndex = 5 },
		},
		"lowest of two entries": {
			change: func(f *agent.Facts) { f.RDMA[0].GIDs = append(gids(7, "192.168.200.12"), f.RDMA[0].GIDs...) },
		},
		"twin at another index": {
			change: func(f *agent.Facts) { f.RDMA[1].GIDs = gids(5, "192.168.201.12") },
			want: func(id *Identity) {
				id.HCAs = id.HCAs[:1]
				id.LeftOut["roceP2p1s0f0"] = "its GID 3 is no RoCE v2 entry of an IPv4 address, and NCCL uses one index for all devices"
			},
		},
		"twin without address": {
			change: func(f *agent.Facts) { f.RDMA[1].GIDs = nil },
			want: func(id *Identity) {
				id.HCAs = id.HCAs[:1]
				id.LeftOut["roceP2p1s0f0"] = "enP2p1s0f0np0 has no IPv4 address, so it has no RoCE v2 GID"
			},
		},
		"twin unplugged": {
			change: func(f *agent.Facts) { f.RDMA[1].Active = false },
			want: func(id *Identity) {
				id.HCAs = id.HCAs[:1]
				id.LeftOut["roceP2p1s0f0"] = "its port is not active"
			},
		},
		"own device inactive": {
			change: func(f *agent.Facts) { f.RDMA[0].Active = false },
			want: func(id *Identity) {
				id.HCAs, id.GIDIndex = nil, NoGID
				id.LeftOut["rocep1s0f0"] = "its port is not active"
			},
		},
		"no GID for the address yet": {
			change: func(f *agent.Facts) { f.RDMA[0].GIDs = nil },
			want:   func(id *Identity) { id.GIDIndex = NoGID },
		},
		"no RDMA": {
			change: func(f *agent.Facts) { f.RDMA = nil },
			want:   func(id *Identity) { id.HCAs, id.GIDIndex = nil, NoGID },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts, want := spark(), both
			want.HCAs, want.LeftOut = slices.Clone(both.HCAs), map[string]string{}
			if test.change != nil {
				test.change(&facts)
			}
			if test.want != nil {
				test.want(&want)
			}
			got, err := Resolve(facts, "192.168.200.12")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolveFails(t *testing.T) {
	for address, part := range map[string]string{
		"192.168.200.99": "no interface holds it; the node has 10.1.230.180 on enP7s7, 192.168.200.12 on enp1s0f0np0",
		"192.168.210.12": "interface enp1s0f1np1 holds it and is down",
		"aurora-1":       "it is not an IP address",
		"":               "it is not an IP address",
	} {
		_, err := Resolve(spark(), address)
		var typed *Error
		if !errors.As(err, &typed) || !strings.HasPrefix(typed.Reason, part) {
			t.Errorf("%q: got %v, want reason %q", address, err, part)
		}
	}
}

func TestEnv(t *testing.T) {
	id, err := Resolve(spark(), "192.168.200.12")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"VLLM_HOST_IP": "192.168.200.12", "RAY_NODE_IP_ADDRESS": "192.168.200.12",
		"RAY_OVERRIDE_NODE_IP_ADDRESS": "192.168.200.12", "RAY_ADDRESS": "192.168.200.12:6379",
		"GLOO_SOCKET_IFNAME": "enp1s0f0np0", "NCCL_SOCKET_IFNAME": "=enp1s0f0np0",
		"TP_SOCKET_IFNAME": "enp1s0f0np0", "UCX_NET_DEVICES": "enp1s0f0np0",
		"NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0", "NCCL_IB_GID_INDEX": "3",
	}
	got := id.Env("192.168.200.12:6379")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name := range got {
		if !slices.Contains(Reserved(), name) {
			t.Errorf("%s is set but not reserved", name)
		}
	}
	if !slices.IsSorted(Reserved()) || len(Reserved()) != len(want) {
		t.Errorf("reserved names: %v", Reserved())
	}
	if _, found := id.Env("")["RAY_ADDRESS"]; found {
		t.Error("RAY_ADDRESS without a cluster")
	}
	plain := Identity{Address: "10.0.0.1", Interface: "eth1", GIDIndex: NoGID}.Env("")
	if _, found := plain["NCCL_IB_HCA"]; found {
		t.Error("NCCL_IB_HCA without RDMA")
	}
}

func TestRefusedAndSecret(t *testing.T) {
	got := Refused(map[string]string{"VLLM_HOST_IP": "", "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "x"})
	if diff := cmp.Diff([]string{"NCCL_IB_HCA", "VLLM_HOST_IP"}, got); diff != "" {
		t.Error(diff)
	}
	if got := Refused(nil); got == nil || len(got) != 0 {
		t.Errorf("nothing to refuse: %#v", got)
	}
	masked := Masked(map[string]string{"HF_TOKEN": "hf_x", "api_key": "k", "NCCL_DEBUG": "INFO"})
	if diff := cmp.Diff(map[string]string{"HF_TOKEN": "(hidden)", "api_key": "(hidden)", "NCCL_DEBUG": "INFO"}, masked); diff != "" {
		t.Error(diff)
	}
	if slices.Contains(PerNode(), "RAY_ADDRESS") || !slices.Contains(PerNode(), "NCCL_IB_GID_INDEX") {
		t.Errorf("per node: %v", PerNode())
	}
}
