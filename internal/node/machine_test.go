package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

func TestMachineOf(t *testing.T) {
	facts := func(macs ...string) agent.Facts {
		out := agent.Facts{RDMA: []agent.RDMADevice{{Interface: "enp1s0f0np0"}}, MachineID: "3f1c0000000000000000000000000000"}
		for i, mac := range macs {
			name := []string{"enP7s7", "enp1s0f0np0", "enx0"}[i]
			out.Interfaces = append(out.Interfaces, agent.Interface{Name: name, MAC: mac})
		}
		return out
	}
	for name, c := range map[string]struct {
		facts    agent.Facts
		accepted string
		want     Machine
	}{
		"the card of the fabric":          {facts("4c:bb:47:00:00:01", "4c:bb:47:00:00:09", "00:e0:4c:68:00:01"), "", Machine{"4c:bb:47:00:00:09", []string{"00:e0:4c:68:00:01", "4c:bb:47:00:00:01", "4c:bb:47:00:00:09"}}},
		"the accepted card":               {facts("4c:bb:47:00:00:01", "4c:bb:47:00:00:09"), "4c:bb:47:00:00:01", Machine{"4c:bb:47:00:00:01", []string{"4c:bb:47:00:00:01", "4c:bb:47:00:00:09"}}},
		"another one when that is gone":   {facts("4c:bb:47:00:00:01"), "4c:bb:47:00:00:09", Machine{"4c:bb:47:00:00:01", []string{"4c:bb:47:00:00:01"}}},
		"never what a system made up":     {facts("02:42:ac:11:00:02", "52:54:00:12:34:56", "00:00:00:00:00:00"), "", Machine{}},
		"no Infiniband or broken address": {facts("", "80:00:02:08:fe:80:00:00:00:00:00:00:4c:bb:47:03:00:2c:1a:3b", "x"), "", Machine{}},
	} {
		if diff := cmp.Diff(c.want, MachineOf(c.facts, c.accepted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSame(t *testing.T) {
	one := Machine{"4c:bb:47:00:00:09", []string{"4c:bb:47:00:00:01", "4c:bb:47:00:00:09"}}
	for name, c := range map[string]struct {
		a, b Claim
		want string
	}{
		"one host":                      {Claim{Host: "10.1.230.180"}, Claim{Host: "10.1.230.180"}, "both name this host"},
		"one host in another spelling":  {Claim{Host: "Aurora-1"}, Claim{Host: "aurora-1"}, "both name this host"},
		"two ports of a gateway":        {Claim{Host: "gate", Port: 2201}, Claim{Host: "gate", Port: 2202}, ""},
		"a machine under two names":     {Claim{Host: "a", Machine: one}, Claim{Host: "b", Machine: one}, "both are the machine with the network card 4c:bb:47:00:00:09"},
		"known by its accepted card":    {Claim{Host: "a", Machine: Machine{Name: "4c:bb:47:00:00:01"}}, Claim{Host: "b", Machine: one}, "both are the machine with the network card 4c:bb:47:00:00:01"},
		"the other way round":           {Claim{Host: "b", Machine: one}, Claim{Host: "a", Machine: Machine{Name: "4c:bb:47:00:00:01"}}, "both are the machine with the network card 4c:bb:47:00:00:01"},
		"two machines":                  {Claim{Host: "a", Machine: one}, Claim{Host: "b", Machine: Machine{Name: "4c:bb:47:00:00:11"}}, ""},
		"machines that cannot be told":  {Claim{Host: "a"}, Claim{Host: "b"}, ""},
		"one dongle lent to the other":  {Claim{Host: "a", Machine: Machine{"x", []string{"d", "x"}}}, Claim{Host: "b", Machine: Machine{"y", []string{"d", "y"}}}, ""},
		"an unknown one and a known":    {Claim{Host: "a", Machine: one}, Claim{Host: "b"}, ""},
		"one address, two SSH servers":  {Claim{Host: "a"}, Claim{Host: "a", Port: 2222}, ""},
		"the same machine on two ports": {Claim{Host: "a", Machine: one}, Claim{Host: "a", Port: 2222, Machine: one}, "both are the machine with the network card 4c:bb:47:00:00:09"},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
