package watch

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/spark-stack/terraform-provider-spark/internal/progress"
)

// bars shows acts on a terminal: a line for the phase of each, and a bar for each node that receives.
type bars struct {
	container *mpb.Progress
	known     map[string]*shown
}

// shown is a line of the terminal; text is what stands behind it.
type shown struct {
	bar  *mpb.Bar
	text atomic.Value
}

func newBars(out io.Writer) *bars {
	return &bars{container: mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithRefreshRate(look)), known: map[string]*shown{}}
}

func (b *bars) show(acts []progress.Act, now time.Time) {
	for _, act := range acts {
		b.line(act.Thing, mpb.NopStyle(), act.Thing).set(phase(act, now), 0, 1, !act.Running(now))
		for _, one := range act.Copies {
			text := amount(one)
			if one.File != "" && one.Bytes < one.Total {
				text += ", after " + one.File
			}
			b.line(act.Thing+" "+one.Host, mpb.BarStyle(), "  "+one.Host).set(text, one.Bytes, max(one.Total, 1), !act.Running(now))
		}
	}
}

// line finds a line, or makes it.
func (b *bars) line(key string, style mpb.BarFillerBuilder, name string) *shown {
	if known, exists := b.known[key]; exists {
		return known
	}
	one := &shown{}
	one.text.Store("")
	text := func(decor.Statistics) string { stored, _ := one.text.Load().(string); return stored }
	one.bar = b.container.New(0, style, mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)), mpb.AppendDecorators(decor.Any(text)))
	b.known[key] = one
	return one
}

func (s *shown) set(text string, current, total int64, ended bool) {
	s.text.Store(text)
	s.bar.SetTotal(total, false)
	s.bar.SetCurrent(current)
	if ended {
		s.bar.EnableTriggerComplete()
		if current < total {
			s.bar.Abort(false)
		}
	}
}

func (b *bars) close() {
	for _, one := range b.known {
		if !one.bar.Completed() {
			one.bar.Abort(false)
		}
	}
	b.container.Wait()
}
