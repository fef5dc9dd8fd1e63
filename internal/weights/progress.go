package weights

import (
	"fmt"
	"maps"
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
	now      Progress
	ended    int64            // bytes of copies that ended
	running  map[string]int64 // bytes of copies that run
	reported time.Time
	anchor   time.Time // start of the rate's window
	anchored int64     // bytes at that time
}

func newMeter(copies []Copy, report func(Progress)) *meter {
	m := &meter{report: report, running: map[string]int64{}, anchor: time.Now()}
	for _, one := range copies {
		m.now.Total += one.Bytes()
		m.now.TotalFiles += len(one.Files)
	}
	return m
}

// bytes is the count of one running copy so far.
func (m *meter) bytes(id string, count int64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.running[id] = count
	m.tell(false)
}

// file counts a finished file.
func (m *meter) file() {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.now.Files++
	m.tell(m.now.Files == m.now.TotalFiles)
}

// finish ends a copy.
func (m *meter) finish(id string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.ended += m.running[id]
	delete(m.running, id)
}

// tell reports at most once a second, or now.
func (m *meter) tell(always bool) {
	total := m.ended
	for count := range maps.Values(m.running) {
		total += count
	}
	m.now.Bytes = min(total, m.now.Total)
	at := time.Now()
	if m.report == nil || (!always && at.Sub(m.reported) < reportEvery) {
		return
	}
	m.reported = at
	if passed := at.Sub(m.anchor); passed >= reportEvery {
		m.now.Rate = float64(m.now.Bytes-m.anchored) / passed.Seconds()
		m.now.ETA = 0
		if m.now.Rate > 0 {
			m.now.ETA = time.Duration(float64(m.now.Total-m.now.Bytes) / m.now.Rate * float64(time.Second))
		}
		if passed >= rateWindow {
			m.anchor, m.anchored = at, m.now.Bytes
		}
	}
	m.report(m.now)
}
