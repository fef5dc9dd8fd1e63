package weights

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Depth is how much of the files is read for a proof.
type Depth string

// The depths.
const (
	// Quick reads whole what was written to since it was last proved, and nothing else.
	Quick Depth = "quick"
	// Full reads every file on every host: it finds bits that rotted on the disk.
	Full Depth = "full"
)

// badMark precedes the stamp of a file that was read and is not as accepted.
const badMark = "!"

// maxNamed is how many files a question names at most; the agent takes no larger ones.
const maxNamed = 4096

// Prove reads the files whose content listings leave in doubt, and gives the listings with what it
// found: [Compare] then tells contents of one size apart. The manifest is returned with the digests that
// became known, and remembers what was proved, so that a file that was only touched is read once. The
// order of hosts is the order of preference where nothing else says which content is the accepted one.
func Prove(ctx context.Context, manifest Manifest, hosts []Host, listings map[string]agent.Listing, depth Depth) (Manifest, map[string]agent.Listing, error) {
	digests, err := read(ctx, hosts, doubts(manifest, listings, depth))
	if err != nil {
		return manifest, listings, err
	}
	order := names(hosts)
	manifest.Files = adopt(manifest, order, listings, digests)
	listings = found(manifest, listings, digests)
	return manifest.remember(order, listings), listings, nil
}

// doubts are the files to read, by host. A file without a stamp is taken for what its size, header and
// sample say; one whose stamp differs was written to, and is read, with one that can be compared with it.
func doubts(manifest Manifest, listings map[string]agent.Listing, depth Depth) map[string][]agent.File {
	wanted := map[string]map[string]bool{} // host, file
	have := byName(listings)
	for _, want := range manifest.Files {
		var doubtful, unchanged []string
		for _, host := range sortedKeys(listings) {
			file, exists := have[host][want.Name]
			stamp := manifest.Seen[host][want.Name]
			switch {
			case fault(want, file, exists) != "" || stamp == badMark+file.Stamp:
			case depth == Full || (stamp != "" && file.Stamp != "" && stamp != file.Stamp):
				doubtful = append(doubtful, host)
			case stamp != "" && stamp == file.Stamp:
				unchanged = append(unchanged, host)
			}
		}
		if len(doubtful) > 0 && want.SHA256 == "" && len(unchanged) > 0 {
			doubtful = append(doubtful, unchanged[0])
		}
		for _, host := range doubtful {
			if wanted[host] == nil {
				wanted[host] = map[string]bool{}
			}
			wanted[host][want.Name] = true
		}
	}
	list := map[string][]agent.File{}
	for host, names := range wanted {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			file := have[host][name]
			list[host] = append(list[host], agent.File{Name: name, Size: file.Size, Link: file.Link})
		}
	}
	return list
}

// read has every host digest its files, all hosts at once.
func read(ctx context.Context, hosts []Host, list map[string][]agent.File) (map[string]map[string]agent.File, error) {
	var lock sync.Mutex
	digests := map[string]map[string]agent.File{}
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		name := host.Machine.Host()
		if len(list[name]) == 0 {
			continue
		}
		group.Go(func() error {
			helper, err := host.Machine.Agent(ctx)
			if err != nil {
				return err
			}
			read := map[string]agent.File{}
			for files := range slices.Chunk(list[name], maxNamed) {
				err = errors.Join(err, helper.Digest(ctx, agent.DigestRequest{Folder: host.Place.Folder, Files: files}, func(event agent.TransferEvent) {
					if event.Finished != nil {
						read[event.Finished.Name] = *event.Finished
					}
				}))
			}
			lock.Lock()
			defer lock.Unlock()
			digests[name] = read
			return err
		})
	}
	return digests, group.Wait()
}

// adopt gives the files of the manifest whose digest is not known yet the one that was read: that of a
// host where the file was not written to, else that of the first host.
func adopt(manifest Manifest, order []string, listings map[string]agent.Listing, digests map[string]map[string]agent.File) []agent.File {
	files := slices.Clone(manifest.Files)
	have := byName(listings)
	for i, want := range files {
		if want.SHA256 != "" {
			continue
		}
		unchanged := func(host string) bool {
			stamp := manifest.Seen[host][want.Name]
			return stamp != "" && stamp == have[host][want.Name].Stamp
		}
		for _, trusted := range []func(string) bool{unchanged, func(string) bool { return true }} {
			at := slices.IndexFunc(order, func(host string) bool { return trusted(host) && digests[host][want.Name].SHA256 != "" })
			if at >= 0 {
				files[i].SHA256 = digests[order[at]][want.Name].SHA256
				break
			}
		}
	}
	return files
}

// found is the listings with what was read, and with what the manifest remembers to be bad.
func found(manifest Manifest, listings map[string]agent.Listing, digests map[string]map[string]agent.File) map[string]agent.Listing {
	proved := map[string]agent.Listing{}
	for host, listing := range listings {
		listing.Files = slices.Clone(listing.Files)
		for i, file := range listing.Files {
			read, whole := digests[host][file.Name]
			switch {
			case whole && read.Damage != "":
				listing.Files[i].Damage = read.Damage
			case whole:
				listing.Files[i].SHA256 = read.SHA256
			case file.Stamp != "" && manifest.Seen[host][file.Name] == badMark+file.Stamp:
				listing.Files[i].Damage = otherContent
			}
		}
		proved[host] = listing
	}
	return proved
}

// remember notes the stamps of what was found. Of hosts that were not looked at nothing changes; hosts
// that do not belong to the deployment any more are forgotten.
func (m Manifest) remember(order []string, listings map[string]agent.Listing) Manifest {
	seen := map[string]map[string]string{}
	have := byName(listings)
	for _, host := range order {
		if _, looked := listings[host]; !looked {
			if known := m.Seen[host]; known != nil {
				seen[host] = known
			}
			continue
		}
		stamps := map[string]string{}
		for _, want := range m.Files {
			file, exists := have[host][want.Name]
			switch reason := fault(want, file, exists); {
			case reason == "" && file.Stamp != "":
				stamps[want.Name] = file.Stamp
			case reason == otherContent && file.Stamp != "":
				stamps[want.Name] = badMark + file.Stamp
			case m.Seen[host][want.Name] != "":
				// What comes back in its place will have another stamp, and be read.
				stamps[want.Name] = m.Seen[host][want.Name]
			}
		}
		if len(stamps) > 0 {
			seen[host] = stamps
		}
	}
	m.Seen = seen
	return m
}

// forget drops the stamps of files that were copied: the copies proved what they put there.
func (m Manifest) forget(copies []Copy) Manifest {
	seen := map[string]map[string]string{}
	for host, stamps := range m.Seen {
		seen[host] = maps.Clone(stamps)
	}
	for _, one := range copies {
		for _, file := range one.Files {
			delete(seen[one.To], file.Name)
		}
	}
	m.Seen = seen
	return m
}

// byName are the files of listings by host and name.
func byName(listings map[string]agent.Listing) map[string]map[string]agent.File {
	have := map[string]map[string]agent.File{}
	for host, listing := range listings {
		have[host] = map[string]agent.File{}
		for _, file := range listing.Files {
			have[host][file.Name] = file
		}
	}
	return have
}
