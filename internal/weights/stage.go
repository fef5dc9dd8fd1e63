package weights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// Host is one node that shall hold the model.
type Host struct {
	Machine fleet.Machine
	// Address is the node's identity address: copies listen on it and leave from it.
	Address string
	Place   Place
}

// SpaceError says that a copy would not fit; nothing was sent.
type SpaceError struct {
	Host, Folder string
	// Need and Free are in bytes; Need counts only what the host lacks.
	Need, Free int64
}

// Error implements error.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: %d bytes are needed for %s and %d are free; make room for %d bytes more",
		e.Host, e.Need, e.Folder, e.Free, e.Need-e.Free)
}

// IncompleteError says that a host is not complete although its copies ended well.
type IncompleteError struct {
	Host, Folder string
	// Bad maps files to reasons.
	Bad map[string]string
}

// Error implements error.
func (e *IncompleteError) Error() string {
	text := fmt.Sprintf("%s: weights in %s are not complete after the copy:", e.Host, e.Folder)
	for _, name := range sortedKeys(e.Bad) {
		text += fmt.Sprintf(" %s: %s;", name, e.Bad[name])
	}
	return text + " does something else write there?"
}

// Look lists the model's folder on every host, all at once. It reads names and sizes, and of files that
// the manifest does not know headers and samples; no whole content. The key is the machine's host.
func Look(ctx context.Context, manifest Manifest, hosts []Host) (map[string]agent.Listing, error) {
	var lock sync.Mutex
	listings := map[string]agent.Listing{}
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		group.Go(func() error {
			helper, err := host.Machine.Agent(ctx)
			if err != nil {
				return err
			}
			known := manifest.Seen[host.Machine.Host()]
			if len(known) > maxNamed {
				known = nil // They are looked into again, which takes longer and finds the same.
			}
			listing, err := helper.List(ctx, agent.ListRequest{Folder: host.Place.Folder, Below: host.Place.Below, Known: known})
			if err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			listings[host.Machine.Host()] = listing
			return nil
		})
	}
	return listings, group.Wait()
}

// Stage completes every host's copy of the manifest, agent to agent over the identity addresses,
// and returns the manifest with the digests that the copies proved. The order of hosts is the order
// of preference. What is good already is neither read nor sent. Errors: [*NoSourceError],
// [*SpaceError], [*TransferError], [*IncompleteError], or an agent's.
func Stage(ctx context.Context, manifest Manifest, hosts []Host, report func(Progress)) (Manifest, error) {
	listings, err := Look(ctx, manifest, hosts)
	if err != nil {
		return manifest, err
	}
	manifest, listings, err = Prove(ctx, manifest, hosts, listings, Quick)
	if err != nil {
		return manifest, err
	}
	byName := map[string]Host{}
	var prefer []string
	for _, host := range hosts {
		byName[host.Machine.Host()] = host
		prefer = append(prefer, host.Machine.Host())
	}
	copies, err := Plan(manifest, listings, prefer)
	if err != nil || len(copies) == 0 {
		return manifest, err
	}
	if err := room(copies, listings); err != nil {
		return manifest, err
	}
	run := stage{hosts: byName, digests: map[string]string{}, meter: newMeter(copies, report)}
	for wave := 0; wave <= copies[len(copies)-1].Wave; wave++ {
		if err := run.wave(ctx, copies, wave); err != nil {
			return manifest, err
		}
	}
	manifest.Files = slices.Clone(manifest.Files)
	for i, file := range manifest.Files {
		if digest, known := run.digests[file.Name]; known {
			manifest.Files[i].SHA256 = digest
		}
	}
	manifest = manifest.forget(copies)
	return run.proof(ctx, manifest, hosts, copies)
}

// Clean removes unfinished copies of ours from every host. Finished files stay.
func Clean(ctx context.Context, hosts []Host) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		group.Go(func() error {
			helper, err := host.Machine.Agent(ctx)
			if err != nil {
				return err
			}
			return helper.Clean(ctx, host.Place.Folder)
		})
	}
	return group.Wait()
}

// room checks every target's disk before the first byte is sent.
func room(copies []Copy, listings map[string]agent.Listing) error {
	need := map[string]int64{}
	for _, one := range copies {
		need[one.To] += one.Bytes()
	}
	for _, host := range sortedKeys(need) {
		if listing := listings[host]; need[host] > listing.FreeBytes {
			return &SpaceError{Host: host, Folder: listing.Folder, Need: need[host], Free: listing.FreeBytes}
		}
	}
	return nil
}

// stage is one run of copies.
type stage struct {
	hosts map[string]Host
	meter *meter

	lock    sync.Mutex
	digests map[string]string // file, as proved by a receiver
}

// wave runs the copies of one wave together; the first failure ends all.
func (s *stage) wave(ctx context.Context, copies []Copy, wave int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range copies {
		if one.Wave != wave {
			continue
		}
		group.Go(func() error {
			// A digest that an earlier hop proved is checked again on this one.
			one.Files = slices.Clone(one.Files)
			s.lock.Lock()
			for i, file := range one.Files {
				if digest, known := s.digests[file.Name]; known {
					one.Files[i].SHA256 = digest
				}
			}
			s.lock.Unlock()
			digests, err := transfer{Copy: one, from: s.hosts[one.From], to: s.hosts[one.To], meter: s.meter}.run(ctx)
			s.hosts[one.To].Machine.Changed()
			s.lock.Lock()
			defer s.lock.Unlock()
			maps.Copy(s.digests, digests)
			return err
		})
	}
	return group.Wait()
}

// proof looks once more at every host, and remembers what it finds.
func (s *stage) proof(ctx context.Context, manifest Manifest, hosts []Host, copies []Copy) (Manifest, error) {
	listings, err := Look(ctx, manifest, hosts)
	if err != nil {
		return manifest, err
	}
	manifest, listings, err = Prove(ctx, manifest, hosts, listings, Quick)
	if err != nil {
		return manifest, err
	}
	for _, one := range copies {
		if state := Compare(manifest, listings[one.To]); state.Condition != Complete {
			return manifest, &IncompleteError{Host: one.To, Folder: s.hosts[one.To].Place.Folder, Bad: state.Bad}
		}
	}
	return manifest, nil
}
