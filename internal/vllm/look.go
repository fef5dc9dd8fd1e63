package vllm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// healthPause is the pause before /health is asked again after no answer.
const healthPause = time.Second

// Machines are a deployment's nodes by host.
type Machines map[string]fleet.Machine

// Seen is a deployment as the nodes have it. weights.Compare judges the listings.
type Seen struct {
	Server Server
	// Listings are the model's files by host, without digests.
	Listings map[string]agent.Listing
}

// Look reads the server and the weights, all nodes at once, and changes nothing. What the manifest knows is
// not looked into again. It fails if a node
// does not answer, or with a [*weights.Problem] if the model cannot be placed.
func Look(ctx context.Context, spec Spec, manifest weights.Manifest, machines Machines) (Seen, error) {
	hosts, err := Hosts(ctx, spec, machines)
	if err != nil {
		return Seen{}, err
	}
	var seen Seen
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		seen.Server, err = LookServer(ctx, spec, machines)
		return err
	})
	group.Go(func() (err error) {
		seen.Listings, err = weights.Look(ctx, manifest, hosts)
		return err
	})
	return seen, group.Wait()
}

// LookServer reads the server alone: the snapshot of the head's containers, and /health if it runs.
func LookServer(ctx context.Context, spec Spec, machines Machines) (Server, error) {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return Server{}, err
	}
	look, err := snapshots(ctx, machine)
	if err != nil {
		return Server{}, err
	}
	if container, exists := look.container(spec.ContainerName()); exists {
		image, err := machine.Image(ctx, container.ImageID)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return Server{}, err
		}
		look.imageEnv = image.Env
		if look.keyGone, err = spec.keyGone(ctx, machine); err != nil {
			return Server{}, err
		}
		look.healthy = container.Status == running && spec.healthy(ctx, machine)
	}
	if err := ctx.Err(); err != nil {
		return Server{}, err // A question cut short says nothing about the server's health.
	}
	return serverOf(spec, look), nil
}

// healthy asks /health from the node itself. A refusal and a wrong answer count at once; silence is
// asked about once more, because a node that swaps while a model loads may be slow for a moment.
func (s Spec) healthy(ctx context.Context, machine fleet.Machine) bool {
	client := s.client(machine)
	err := client.Health(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err == nil
	}
	select {
	case <-time.After(healthPause):
		return client.Health(ctx) == nil
	case <-ctx.Done():
		return false
	}
}

// client asks this deployment's server on its node.
func (s Spec) client(machine fleet.Machine) *Client {
	return NewClient(machine.HTTP(), s.Listen())
}

// Hosts are the members as the weights need them: the head first, each with the model's place there.
func Hosts(ctx context.Context, spec Spec, machines Machines) ([]weights.Host, error) {
	members := slices.Clone(spec.Cluster.Members)
	slices.SortStableFunc(members, func(a, b Member) int { return rank(spec, a) - rank(spec, b) })
	hosts := make([]weights.Host, len(members))
	group, ctx := errgroup.WithContext(ctx)
	for i, member := range members {
		group.Go(func() error {
			machine, err := machines.of(member.Host)
			if err != nil {
				return err
			}
			facts, err := machine.Facts(ctx)
			if err != nil {
				return err
			}
			place, err := weights.Location(spec.Source, spec.Cluster.WeightsDir, facts.User.Home)
			hosts[i] = weights.Host{Machine: machine, Address: member.Address, Encrypt: !weights.OnFabric(facts, member.Address), Place: place}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	places := map[string]weights.Place{}
	for _, host := range hosts {
		places[host.Machine.Host()] = host.Place
	}
	return hosts, weights.Same(places)
}

// rank orders the head before the workers.
func rank(spec Spec, member Member) int {
	if member.Host == spec.Cluster.Head().Host {
		return 0
	}
	return 1
}

// of is the machine of a host.
func (m Machines) of(host string) (fleet.Machine, error) {
	machine, found := m[host]
	if !found {
		return nil, fmt.Errorf("no machine was opened for %q", host)
	}
	return machine, nil
}
