package weights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
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
	// Encrypt says that others may listen on the address's network: see OnFabric.
	Encrypt bool
	Place   Place
}

// OnFabric says that an address is on an interface of the node's RDMA hardware. Its cable ends at the other
// nodes or at their switch, and copies over it are not encrypted: cores are what limits them.
func OnFabric(facts agent.Facts, address string) bool {
	return slices.ContainsFunc(facts.Interfaces, func(one agent.Interface) bool {
		has := slices.ContainsFunc(one.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr().String() == address })
		return has && slices.ContainsFunc(facts.RDMA, func(device agent.RDMADevice) bool { return device.Interface == one.Name })
	})
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

// survey looks at every host, and reads whole what was written to since it was last proved.
func survey(ctx context.Context, manifest Manifest, hosts []Host) (Manifest, map[string]agent.Listing, error) {
	listings, err := Look(ctx, manifest, hosts)
	if err != nil {
		return manifest, nil, err
	}
	return Prove(ctx, manifest, hosts, listings, Quick)
}

// names are the hosts in their order.
func names(hosts []Host) []string {
	var all []string
	for _, host := range hosts {
		all = append(all, host.Machine.Host())
	}
	return all
}

// Stage completes every host's copy of the manifest, agent to agent over the identity addresses,
// and returns the manifest with the digests that the copies proved. The order of hosts is the order
// of preference. What is good already is neither read nor sent. Errors: [*NoSourceError],
// [*SpaceError], [*TransferError], [*IncompleteError], or an agent's.
func Stage(ctx context.Context, manifest Manifest, hosts []Host, report func(Progress)) (Manifest, error) {
	manifest, listings, err := survey(ctx, manifest, hosts)
	if err != nil {
		return manifest, err
	}
	byName := map[string]Host{}
	for _, host := range hosts {
		byName[host.Machine.Host()] = host
	}
	prefer := names(hosts)
	copies, err := Plan(manifest, listings, prefer)
	if err != nil || len(copies) == 0 {
		return manifest, err
	}
	if err := room(copies, listings); err != nil {
		return manifest, err
	}
	run := stage{hosts: byName, digests: map[string]string{}, meter: newMeter(copies, report)}
	done, failures := run.all(ctx, newQueue(manifest, ordered(listings, prefer), goodFiles(manifest, listings)))
	manifest.Files = slices.Clone(manifest.Files)
	for i, file := range manifest.Files {
		if digest, known := run.digests[file.Name]; known {
			manifest.Files[i].SHA256 = digest
		}
	}
	manifest = manifest.forget(done)
	if failures != nil {
		return manifest, failures
	}
	return run.proof(ctx, manifest, hosts, done)
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
	// digests are of files, as proved by a receiver.
	digests map[string]string
}

// outcome is a copy that ended.
type outcome struct {
	Copy
	digests map[string]string
	err     error
}

// all runs copies until every host is complete, or nothing is left to try. A copy that fails is tried from
// another host, and holds up no copy between others: what ends all is the context alone. The failures are those
// of the hosts that are not complete at the end.
func (s *stage) all(ctx context.Context, q *queue) (done []Copy, failures error) {
	outcomes := make(chan outcome)
	running := 0
	failed := map[string][]error{} // target
	for {
		if ctx.Err() == nil {
			for _, one := range q.ready() {
				running++
				one.Files = s.withDigests(one.Files)
				go func() {
					digests, err := transfer{Copy: one, from: s.hosts[one.From], to: s.hosts[one.To], meter: s.meter}.run(ctx)
					s.hosts[one.To].Machine.Changed()
					outcomes <- outcome{one, digests, err}
				}()
			}
		}
		if running == 0 {
			break
		}
		one := <-outcomes
		running--
		maps.Copy(s.digests, one.digests)
		part := one.Copy
		if one.err != nil {
			part = one.arrived(one.digests)
		}
		q.done(part, one.err == nil)
		if done = append(done, part); one.err == nil {
			continue
		}
		failed[one.To] = append(failed[one.To], one.err)
		if codeOf(one.err) == agent.TransferNoSpace {
			q.spent[one.To] = true
		}
	}
	var all []error
	for _, host := range q.incomplete() {
		all = append(all, failed[host]...)
	}
	return done, errors.Join(append(all, context.Cause(ctx))...)
}

// withDigests has a digest that an earlier copy proved checked again on this one.
func (s *stage) withDigests(files []agent.File) []agent.File {
	files = slices.Clone(files)
	for i, file := range files {
		if digest, known := s.digests[file.Name]; known {
			files[i].SHA256 = digest
		}
	}
	return files
}

// proof looks once more at every host, and remembers what it finds.
func (s *stage) proof(ctx context.Context, manifest Manifest, hosts []Host, copies []Copy) (Manifest, error) {
	manifest, listings, err := survey(ctx, manifest, hosts)
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
