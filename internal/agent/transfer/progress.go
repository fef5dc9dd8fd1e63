package transfer

import (
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// interval is the least time between two reports of bytes.
const interval = 250 * time.Millisecond

// progress counts a transfer's bytes over all its connections and reports them.
type progress struct {
	lock   sync.Mutex
	report Report
	bytes  int64
	last   time.Time
}

// add counts bytes of a unit, negative ones when a part has to be done again.
func (p *progress) add(one *unit, bytes int64) {
	if bytes == 0 {
		return // the first report shall be of something
	}
	one.counted += bytes
	p.lock.Lock()
	defer p.lock.Unlock()
	p.bytes += bytes
	if now := time.Now(); now.Sub(p.last) >= interval {
		p.last = now
		p.report(agent.TransferEvent{Bytes: p.bytes})
	}
}

// listening tells the receiver's address.
func (p *progress) listening(address string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.report(agent.TransferEvent{Listening: address})
}

// finished tells that a unit is in place, once for each of its entries.
func (p *progress) finished(one *unit, modified int64, digest string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, entry := range one.entries {
		p.report(agent.TransferEvent{Bytes: p.bytes, Finished: &agent.File{
			Name: entry.Name, Size: one.size, Link: entry.Link, Modified: modified, SHA256: digest,
		}})
	}
}
