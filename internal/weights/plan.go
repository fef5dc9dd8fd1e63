package weights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// chainBatches is into how many parts a model is cut when several hosts lack it, so that a host
// passes on what it has while it still receives: n hosts then cost (8 + n - 2) / 8 of one copy.
const chainBatches = 8

// Copy is files that go from one host to another.
type Copy struct {
	From, To string
	Files    []agent.File
	// Wave orders the copies: those of one wave run together, after the wave before. In a wave a
	// host sends to at most one host and receives from at most one.
	Wave int
}

// Bytes is the sum of the sizes.
func (c Copy) Bytes() int64 { return Manifest{Files: c.Files}.Bytes() }

// NoSourceError says that no host has a good copy of some files.
type NoSourceError struct {
	// Files maps each such file to what each host has of it.
	Files map[string]map[string]string
}

// Error implements error.
func (e *NoSourceError) Error() string {
	var parts []string
	for _, name := range sortedKeys(e.Files) {
		var hosts []string
		for _, host := range sortedKeys(e.Files[name]) {
			hosts = append(hosts, host+": "+e.Files[name][host])
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, strings.Join(hosts, "; ")))
	}
	return "no node has a good copy of " + strings.Join(parts, ", ")
}

// Plan decides the copies that complete every listed host. Hosts are served, and asked, in the
// order of prefer, then by name. A damaged source is repaired from any host that has the file good.
// The error is a [*NoSourceError].
func Plan(manifest Manifest, listings map[string]agent.Listing, prefer []string) ([]Copy, error) {
	hosts := ordered(listings, prefer)
	good := map[string]map[string]bool{} // host, file
	lost := map[string]map[string]string{}
	targets := 0
	for _, host := range hosts {
		state := Compare(manifest, listings[host])
		good[host] = map[string]bool{}
		for _, file := range manifest.Files {
			if reason, bad := state.Bad[file.Name]; bad {
				if lost[file.Name] == nil {
					lost[file.Name] = map[string]string{}
				}
				lost[file.Name][host] = reason
			} else {
				good[host][file.Name] = true
			}
		}
		if len(state.Bad) > 0 {
			targets++
		}
	}
	for name, hostsWithout := range lost {
		if len(hostsWithout) < len(hosts) {
			delete(lost, name)
		}
	}
	if len(lost) > 0 {
		return nil, &NoSourceError{Files: lost}
	}
	limit := manifest.Bytes()
	if targets > 1 {
		limit /= chainBatches
	}
	var copies []Copy
	for wave := 0; ; wave++ {
		next := oneWave(manifest, hosts, good, limit, wave)
		if len(next) == 0 {
			return copies, nil
		}
		for _, one := range next {
			for _, file := range one.Files {
				good[one.To][file.Name] = true
			}
		}
		copies = append(copies, next...)
	}
}

// oneWave gives each host that lacks something one source that is still free and has some of it.
func oneWave(manifest Manifest, hosts []string, good map[string]map[string]bool, limit int64, wave int) []Copy {
	var copies []Copy
	sending := map[string]bool{}
	for _, target := range hosts {
		for _, source := range hosts {
			if sending[source] {
				continue
			}
			if files := batch(manifest, good[source], good[target], limit); len(files) > 0 {
				sending[source] = true
				copies = append(copies, Copy{From: source, To: target, Files: files, Wave: wave})
				break
			}
		}
	}
	return copies
}

// batch is what the source has and the target lacks, at least one file, at most about limit bytes.
func batch(manifest Manifest, source, target map[string]bool, limit int64) []agent.File {
	var files []agent.File
	var bytes int64
	for _, file := range manifest.Files {
		if target[file.Name] || !source[file.Name] {
			continue
		}
		if len(files) > 0 && bytes+file.Size > limit {
			break
		}
		files = append(files, file)
		bytes += file.Size
	}
	return files
}

// ordered are the listed hosts: those of prefer first, then the rest by name.
func ordered(listings map[string]agent.Listing, prefer []string) []string {
	var hosts []string
	for _, host := range slices.Concat(prefer, sortedKeys(listings)) {
		if _, listed := listings[host]; listed && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
