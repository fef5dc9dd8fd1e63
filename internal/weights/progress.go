package weights

import (
	"fmt"
	"sync"
	"time"
)

// Progress is how far the copies of one Stage are. A file that goes to two hosts counts twice.
type Progress struct {
	Bytes, Total      int64
	Files, TotalFiles int
	// Rate in bytes per second over the last seconds; 0 while it is not known.
	Rate float64
	// ETA is what remains at that rate; 0 while it is not known.
	ETA time.Duration
	// Nodes are the hosts that receive, sorted.
	Nodes []NodeProgress
	// Event is a sentence about what has just happened, such as that a file is there; empty for a mere count.
	Event string
}

// NodeProgress is how far one host is. The numbers are as in Progress.
type NodeProgress struct {
	Host string
	// From is the host that sends to it now; empty if none does. File came last.
	From, File        string
	Bytes, Total      int64
	Files, TotalFiles int
	Rate              float64
	ETA               time.Duration
}

// String is the sentence for a log: "copying weights: 3 of 16 files, 12.3 of 119.0 GB, 1.20 GB/s, 1m29s left".
func (p Progress) String() string {
	unit, name := 1e9, "GB"
	if p.Total < 1e9 {
		unit, name = 1e6, "MB"
	}
	text := fmt.Sprintf("copying weights: %d of %d files, %.1f of %.1f %s", p.Files, p.TotalFiles, float64(p.Bytes)/unit, float64(p.Total)/unit, name)
	if p.Rate > 0 {
		text += fmt.Sprintf(", %.2f %s/s", p.Rate/unit, name)
	}
	if p.ETA > 0 {
		text += fmt.Sprintf(", %s left", p.ETA.Round(time.Second))
	}
	return text
}

// Size is a number of bytes in words, as "119.0 GB", "3.5 MB" or "512 bytes".
func Size(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

const (
	// reportEvery bounds how often progress is reported.
	reportEvery = time.Second
	// rateWindow is the time over which the rate is taken.
	rateWindow = 5 * time.Second
)

// meter adds the bytes of all copies of a Stage and reports.
type meter struct {
	report func(Progress)

	lock     sync.Mutex
	nodes    map[string]*counter // target
	running  map[string]int64    // bytes of copies that run, by target
	whole    counter
	reported time.Time
}

// counter is a node's share, or the whole.
type counter struct {
	NodeProgress
	ended    int64     // bytes of copies that ended
	anchor   time.Time // start of the rate's window
	anchored int64     // bytes at that time
}

func newMeter(copies []Copy, report func(Progress)) *meter {
	m := &meter{report: report, nodes: map[string]*counter{}, running: map[string]int64{}}
	now := time.Now()
	m.whole.anchor = now
	for _, one := range copies {
		node := m.nodes[one.To]
		if node == nil {
			node = &counter{NodeProgress: NodeProgress{Host: one.To}, anchor: now}
			m.nodes[one.To] = node
		}
		for _, counted := range []*counter{node, &m.whole} {
			counted.Total += one.Bytes()
			counted.TotalFiles += len(one.Files)
		}
	}
	return m
}

// begin tells from whom a host receives now.
func (m *meter) begin(from, to string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.nodes[to].From = from
	m.running[to] = 0
}

// bytes is the count of the copy that runs to a host, so far.
func (m *meter) bytes(to string, count int64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.running[to] = count
	m.tell(false, "")
}

// file counts a finished file.
func (m *meter) file(to, name string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.whole.Files++
	m.nodes[to].Files++
	m.nodes[to].File = name
	m.tell(m.whole.Files == m.whole.TotalFiles, fmt.Sprintf("%s has %s", to, name))
}

// finish ends a copy to a host, of which some bytes arrived: what of a failed one lies unfinished is counted by
// the next one, which goes on from there.
func (m *meter) finish(to string, arrived int64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.nodes[to].ended += arrived
	m.nodes[to].From = ""
	delete(m.running, to)
}

// tell reports at most once a second, or what happened at once.
func (m *meter) tell(always bool, event string) {
	if m.report == nil {
		return
	}
	at := time.Now()
	if event == "" && !always && at.Sub(m.reported) < reportEvery {
		return
	}
	m.reported = at
	m.whole.ended = 0
	now := Progress{Event: event}
	for _, host := range sortedKeys(m.nodes) {
		node := m.nodes[host]
		node.count(at, m.running[host])
		m.whole.ended += node.Bytes
		now.Nodes = append(now.Nodes, node.NodeProgress)
	}
	m.whole.count(at, 0)
	now.Bytes, now.Total, now.Files, now.TotalFiles = m.whole.Bytes, m.whole.Total, m.whole.Files, m.whole.TotalFiles
	now.Rate, now.ETA = m.whole.Rate, m.whole.ETA
	m.report(now)
}

// count takes the bytes at a time, and the rate from those of some seconds before.
func (c *counter) count(at time.Time, running int64) {
	c.Bytes = min(c.ended+running, c.Total)
	passed := at.Sub(c.anchor)
	if passed < reportEvery {
		return
	}
	c.Rate, c.ETA = max(float64(c.Bytes-c.anchored)/passed.Seconds(), 0), 0
	if c.Rate > 0 {
		c.ETA = time.Duration(float64(c.Total-c.Bytes) / c.Rate * float64(time.Second))
	}
	if passed >= rateWindow {
		c.anchor, c.anchored = at, c.Bytes
	}
}
