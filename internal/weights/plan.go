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
	// Wave orders the copies of a plan, where all take equally long: those of one wave run together.
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
	lost := map[string]map[string]string{}
	for _, host := range hosts {
		for name, reason := range Compare(manifest, listings[host]).Bad {
			if lost[name] == nil {
				lost[name] = map[string]string{}
			}
			lost[name][host] = reason
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
	q := newQueue(manifest, hosts, goodFiles(manifest, listings))
	var copies []Copy
	for wave := 0; ; wave++ {
		next := q.ready()
		if len(next) == 0 {
			return copies, nil
		}
		for _, one := range next {
			one.Wave = wave
			copies = append(copies, one)
		}
		for _, one := range next {
			q.done(one, true)
		}
	}
}

// goodFiles are the files that each host has as accepted, by host and name.
func goodFiles(manifest Manifest, listings map[string]agent.Listing) map[string]map[string]bool {
	good := map[string]map[string]bool{}
	for host, listing := range listings {
		good[host] = map[string]bool{}
		bad := Compare(manifest, listing).Bad
		for _, file := range manifest.Files {
			if bad[file.Name] == "" {
				good[host][file.Name] = true
			}
		}
	}
	return good
}

// Route is what one host gets, from whom, before the first byte is sent.
type Route struct {
	// From are the hosts that send it, in the order in which they begin.
	From []string
	To   string
	// Files and Bytes that the host lacks.
	Files int
	Bytes int64
}

// Routes sums the copies of a plan by target, sorted by host.
func Routes(copies []Copy) []Route {
	byHost := map[string]Route{}
	for _, one := range copies {
		route := byHost[one.To]
		route.To, route.Files, route.Bytes = one.To, route.Files+len(one.Files), route.Bytes+one.Bytes()
		if !slices.Contains(route.From, one.From) {
			route.From = append(route.From, one.From)
		}
		byHost[one.To] = route
	}
	var routes []Route
	for _, host := range sortedKeys(byHost) {
		routes = append(routes, byHost[host])
	}
	return routes
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
