package hosttest

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
)

// agentOf starts the real client on a plain SSH session.
func agentOf(t *testing.T, name string, connection *ssh.Client) agent.Agent {
	t.Helper()
	started, err := client.Start(t.Context(), name, client.StarterFunc(
		func(_ context.Context, command string) (*client.Process, error) {
			session, err := connection.NewSession()
			if err != nil {
				return nil, err
			}
			stdin, err := session.StdinPipe()
			if err != nil {
				return nil, err
			}
			stdout, err := session.StdoutPipe()
			if err != nil {
				return nil, err
			}
			return &client.Process{
				Stdin: stdin, Stdout: stdout, Stderr: func() string { return "" },
				Wait: func() (int, error) {
					err := session.Wait()
					if failed, ok := errors.AsType[*ssh.ExitError](err); ok {
						return failed.ExitStatus(), nil
					}
					return 0, err
				},
				Close: func() error {
					if err := session.Close(); !errors.Is(err, io.EOF) {
						return err
					}
					return nil
				},
			}, session.Start(command)
		}), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() })
	return started
}

func TestFacts(t *testing.T) {
	f := NewFleet(t, 2)
	h := f.Host(1)
	node := agentOf(t, h.Name(), mustDial(t, f, 1))
	facts, err := node.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if facts.Hostname != "aurora-2" || facts.Architecture != "arm64" || facts.DefaultInterface != ManagementInterface ||
		facts.User.Name != User || !slices.Contains(facts.User.Groups, "docker") || facts.OS != osName {
		t.Errorf("facts: %+v", facts)
	}
	if len(facts.GPUs) != 1 || facts.GPUs[0].Name != gpuName || facts.Driver != driverVersion {
		t.Errorf("GPUs: %+v", facts)
	}
	wantRDMA := []agent.RDMADevice{{
		Name: RDMADevice, Interface: FabricInterface, Active: true, LinkLayer: "Ethernet",
		GIDs: []agent.GID{{Index: 3, Address: netip.MustParseAddr("127.0.100.12")}},
	}}
	if diff := cmp.Diff(wantRDMA, facts.RDMA, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("RDMA (-want +got):\n%s", diff)
	}

	h.SetFabricAddress("127.0.100.77")
	h.SetGIDIndex(5)
	h.SetGPUs(0)
	h.SetMemory(100<<30, 90<<30, 5<<30)
	h.TakePort(6379)
	facts, err = node.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gid := agent.GID{Index: 5, Address: netip.MustParseAddr("127.0.100.77")}
	if len(facts.GPUs) != 0 || facts.GPUError != "" || facts.RDMA[0].GIDs[0] != gid || facts.Memory.Free != 5<<30 ||
		!slices.Contains(facts.Listening, 6379) ||
		facts.Interfaces[2].Addresses[0] != netip.MustParsePrefix("127.0.100.77/24") {
		t.Errorf("facts afterwards: %+v", facts)
	}
	if entries := f.Journal(); len(entries) != 0 {
		t.Errorf("looking changed something: %v", entries)
	}
}

func TestTransfer(t *testing.T) {
	f := NewFleet(t, 2)
	f.WriteModel(0, "/models/tiny")
	source := agentOf(t, "aurora-1", mustDial(t, f, 0))
	target := agentOf(t, "aurora-2", mustDial(t, f, 1))
	ctx := t.Context()
	listing, err := source.List(ctx, agent.ListRequest{Folder: "/models/tiny"})
	if err != nil || !listing.Exists || len(listing.Files) != ModelShards+3 || len(listing.Shards) != ModelShards {
		t.Fatalf("listing: %+v, %v", listing, err)
	}
	for _, file := range listing.Files {
		if file.Damage != "" {
			t.Errorf("%s: %s", file.Name, file.Damage)
		}
	}
	secret := strings.Repeat("5a", 32)
	listening := make(chan string, 1)
	received := make(chan error, 1)
	go func() {
		received <- target.Receive(ctx, agent.ReceiveRequest{
			Folder: "/models/tiny", Address: f.Host(1).FabricAddress(), Secret: secret, Files: listing.Files,
		}, func(event agent.TransferEvent) {
			if event.Listening != "" {
				listening <- event.Listening
			}
		})
	}()
	select {
	case address := <-listening:
		err = source.Send(ctx, agent.SendRequest{
			Folder: "/models/tiny", Source: f.Host(0).FabricAddress(), Target: address, Secret: secret, Files: listing.Files,
		}, func(agent.TransferEvent) {})
		if err != nil {
			t.Errorf("send: %v", err)
		}
		if err := <-received; err != nil {
			t.Errorf("receive: %v", err)
		}
	case err := <-received:
		t.Fatalf("receive: %v", err)
	}
	if problem := checkModel(f.Host(1).Path("/models/tiny")); problem != "" {
		t.Error(problem)
	}
	entries := f.Journal()
	if len(entries) != len(listing.Files)+1 || entries[0] != (Entry{"aurora-2", "make folder", "/models/tiny"}) ||
		entries[1] != (Entry{"aurora-2", "write file", "/models/tiny/config.json"}) {
		t.Errorf("journal: %v", entries)
	}
	f.ResetJournal()
	f.Host(1).TruncateFile("/models/tiny/"+ShardName(2), 99)
	if entries := f.Journal(); len(entries) != 0 {
		t.Errorf("journal after a test's own hand: %v", entries)
	}
}
