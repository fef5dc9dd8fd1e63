package watch

import (
	"fmt"
	"io"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/progress"
)

// lines shows acts as text: what changed, each thing at most once a second.
type lines struct {
	out  io.Writer
	last map[string]line
}

// line is what was said last of something.
type line struct {
	text string
	at   time.Time
}

func (l *lines) show(acts []progress.Act, now time.Time) {
	for _, act := range acts {
		for _, one := range act.Copies {
			l.say(act.Thing+" "+one.Host, amount(one), one.Bytes == one.Total, now)
		}
		l.say(act.Thing, phase(act, now), !act.Running(now), now)
	}
}

// say prints what is new of a thing; the last word always.
func (l *lines) say(thing, text string, last bool, now time.Time) {
	before := l.last[thing]
	if text == before.text || (!last && now.Sub(before.at) < time.Second) {
		return
	}
	l.last[thing] = line{text, now}
	// Nobody is left to tell that nobody reads.
	_, _ = fmt.Fprintf(l.out, "%s: %s\n", thing, text)
}

func (l *lines) close() {}

// phase is what happens to an act, or how it ended.
func phase(act progress.Act, now time.Time) string {
	took := act.Updated.Sub(act.Started).Round(time.Second)
	switch {
	case act.Error != "":
		return fmt.Sprintf("failed after %s: %s", took, act.Error)
	case act.Ended:
		return fmt.Sprintf("done in %s", took)
	case !act.Running(now):
		return fmt.Sprintf("nothing heard for %s: the provider's process has ended. Finished files stay; apply again goes on from there", progress.Silence)
	}
	return act.Phase
}

// amount is how far a copy is.
func amount(one progress.Copy) string {
	text := fmt.Sprintf("%d of %d files, %s of %s", one.Files, one.TotalFiles, size(float64(one.Bytes)), size(float64(one.Total)))
	if one.Rate > 0 && one.Bytes < one.Total {
		text += fmt.Sprintf(", %s/s, %s left", size(one.Rate), time.Duration(one.Left*float64(time.Second)).Round(time.Second))
	}
	if one.From != "" && one.Bytes < one.Total {
		text += ", from " + one.From
	}
	return text
}

// size is a number of bytes in words.
func size(bytes float64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", bytes/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", bytes/1e6)
	}
	return fmt.Sprintf("%.0f kB", bytes/1e3)
}
