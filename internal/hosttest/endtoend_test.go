package hosttest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// product is a connection made by the product's own client.
func product(t *testing.T, f *Fleet, i int) (sshx.Client, error) {
	t.Helper()
	c, err := sshx.Dial(t.Context(), sshx.Config{
		Host: f.Host(i).Address(), Port: f.Port(), User: User,
		PrivateKeyFile: f.PrivateKeyFile(), KnownHostsFiles: []string{f.KnownHosts()},
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// What the product reads back is what the fleet meant: this is what makes the fleet's own encoding
// and sshd's manners trustworthy for other tests.
func TestProductReadsTheCluster(t *testing.T) {
	timing := DefaultTiming()
	timing.RankLoss = time.Minute
	f := NewFleet(t, 2, WithTiming(timing))
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	startCluster(t, f)
	plain := mustDial(t, f, 0)
	waitNodes(t, plain, "127.0.100.11", "127.0.100.12")
	f.Host(0).RunContainer("vllm-pair", serveSpec(f))
	waitHealthy(t, plain)
	f.Host(1).KillContainer("ray-pair")
	waitNodes(t, plain, "127.0.100.11")

	c, err := product(t, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	line := gcs.Transport(c.DialContext)
	defer line.CloseIdleConnections()
	table, err := gcs.New(line, "127.0.100.11:6379", gcs.Credential{}).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Address, Hostname string
		Alive, Head       bool
		GPUs, Used        int
		Offers            bool
	}
	var got []row
	for _, node := range table.Nodes {
		got = append(got, row{
			node.Address, node.Hostname, node.Alive, node.Head, node.GPUs(), node.GPUsUsed(), node.Offers(node.Address),
		})
	}
	want := []row{
		{"127.0.100.11", "aurora-1", true, true, 1, 1, true},
		{"127.0.100.12", "aurora-2", false, false, 0, 0, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(table.Groups) != 1 || table.Groups[0].State != gcs.GroupCreated || len(table.Groups[0].Bundles) != 2 {
		t.Errorf("groups: %+v", table.Groups)
	}
}

func TestProductNamesTheFaults(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)
	for _, test := range []struct {
		name       string
		harm, heal func()
		want       sshx.Kind
	}{
		{"stopped", h.StopSSH, h.StartSSH, sshx.Refused},
		{"denied", func() { h.DenyUser(true) }, func() { h.DenyUser(false) }, sshx.AuthFailed},
		{"new key", h.ChangeHostKey, f.TrustHostKeys, sshx.ChangedHostKey},
	} {
		test.harm()
		_, err := product(t, f, 0)
		if failed, ok := errors.AsType[*sshx.Error](err); !ok || failed.Kind != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		test.heal()
		if _, err := product(t, f, 0); err != nil {
			t.Errorf("healed from %s: %v", test.name, err)
		}
	}
}
