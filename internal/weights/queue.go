package weights

import (
	"slices"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// queue decides which copies may run now. Each host sends to at most one other at a time and receives from at
// most one; whoever is free goes on, so that a slow host delays nobody but itself.
type queue struct {
	manifest Manifest
	hosts    []string
	// limit is about how many bytes a copy has: a host passes on what it has while it still receives.
	limit int64
	good  map[string]map[string]bool // host, file
	// sending and receiving are the hosts that are busy.
	sending, receiving map[string]bool
	// failed are the pairs of hosts, source and target, that are not tried again; spent the hosts that can take
	// nothing from anybody.
	failed map[[2]string]bool
	spent  map[string]bool
}

func newQueue(manifest Manifest, hosts []string, good map[string]map[string]bool) *queue {
	q := &queue{manifest: manifest, hosts: hosts, limit: manifest.Bytes(), good: good,
		sending: map[string]bool{}, receiving: map[string]bool{}, failed: map[[2]string]bool{}, spent: map[string]bool{}}
	if targets := len(q.incomplete()); targets > 1 {
		q.limit /= chainBatches
	}
	return q
}

// incomplete are the hosts that lack something.
func (q *queue) incomplete() []string {
	var lacking []string
	for _, host := range q.hosts {
		if slices.ContainsFunc(q.manifest.Files, func(file agent.File) bool { return !q.good[host][file.Name] }) {
			lacking = append(lacking, host)
		}
	}
	return lacking
}

// ready gives each free host that lacks something one source that is free and has some of it, and counts both as busy.
func (q *queue) ready() []Copy {
	var copies []Copy
	for _, target := range q.hosts {
		if q.receiving[target] || q.spent[target] {
			continue
		}
		for _, source := range q.hosts {
			if q.sending[source] || q.failed[[2]string{source, target}] {
				continue
			}
			if files := batch(q.manifest, q.good[source], q.good[target], q.limit); len(files) > 0 {
				q.sending[source], q.receiving[target] = true, true
				copies = append(copies, Copy{From: source, To: target, Files: files})
				break
			}
		}
	}
	return copies
}

// done frees the hosts of a copy, of which these files arrived. One that failed is not tried again between the
// two; a file that is there in part is found by the next copy, which goes on from there.
func (q *queue) done(one Copy, whole bool) {
	delete(q.sending, one.From)
	delete(q.receiving, one.To)
	if !whole {
		q.failed[[2]string{one.From, one.To}] = true
	}
	for _, file := range one.Files {
		q.good[one.To][file.Name] = true
	}
}
