package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Figure is one line of the table and one entry of bench.json. Values are medians.
type Figure struct {
	ID    string  `json:"id"`
	Value float64 `json:"value"`
	// Unit is "s" or "logins", where less is better, or "MB/s" (10^6 bytes), where more is.
	Unit          string  `json:"unit"`
	Baseline      string  `json:"baseline"`
	BaselineValue float64 `json:"baseline_value"`
	// Ratio is Value / BaselineValue, FloorRatio is Value / Floor.
	Ratio      float64 `json:"ratio"`
	Floor      float64 `json:"floor"`
	FloorRatio float64 `json:"floor_ratio"`

	What         string `json:"what"`
	BaselineWhat string `json:"baseline_what"`
	FloorWhat    string `json:"floor_what"`
	// Also are further baselines with their values and ratios, in words.
	Also string `json:"also,omitempty"`
	// Parts are the steps of the value one after the other, medians in the figure's unit; in the product
	// some of them overlap.
	Parts []Part `json:"parts,omitempty"`
	// Note is what makes the figure less certain.
	Note string `json:"note,omitempty"`

	Samples     int     `json:"samples"`
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	BaselineMin float64 `json:"baseline_min"`
	BaselineMax float64 `json:"baseline_max"`
	FloorMin    float64 `json:"floor_min"`
	FloorMax    float64 `json:"floor_max"`
}

// Part is one step.
type Part struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// The units.
const (
	seconds    = "s"
	megabytesS = "MB/s"
	logins     = "logins"
)

// side is one way to do a thing.
type side struct {
	name, what string
	// sample does it once and returns the value in the contest's unit.
	sample func(context.Context) (float64, error)
}

// contest is a figure before it is measured.
type contest struct {
	id, unit string
	// samples are taken, or fewer when the next turn would end after limit; 0 is no limit.
	samples                int
	limit                  time.Duration
	value, baseline, floor side
	// also are further baselines.
	also []side
	// parts, if set, measures the steps of the value once a turn, always the same in the same order.
	parts func(context.Context) ([]Part, error)
}

// run samples all sides in turns, so that a change of the machine's mood meets all of them. What
// needs no other order runs floor first and value last.
func (c contest) run(ctx context.Context, say func(string, ...any)) (Figure, error) {
	sides := slices.Concat([]side{c.floor, c.baseline}, c.also, []side{c.value})
	series := make([][]float64, len(sides))
	var parts [][]Part
	note := loadNote()
	start := time.Now()
	for turn := range c.samples {
		if spent := time.Since(start); c.limit > 0 && turn > 0 && spent+spent/time.Duration(turn) > c.limit {
			break
		}
		for i, one := range sides {
			value, err := one.sample(ctx)
			if err != nil {
				return Figure{}, fmt.Errorf("%s: %w", one.name, err)
			}
			series[i] = append(series[i], value)
			say("%s %d/%d: %s: %s %s", c.id, turn+1, c.samples, one.name, short(value), c.unit)
		}
		if c.parts != nil {
			taken, err := c.parts(ctx)
			if err != nil {
				return Figure{}, fmt.Errorf("parts: %w", err)
			}
			parts = append(parts, taken)
		}
	}
	floor, baseline, value := series[0], series[1], series[len(series)-1]
	figure := Figure{
		ID: c.id, Unit: c.unit, Value: median(value), Baseline: c.baseline.name, BaselineValue: median(baseline), Floor: median(floor),
		What: c.value.what, BaselineWhat: c.baseline.what, FloorWhat: c.floor.what, Note: note,
		Samples: len(value), Min: slices.Min(value), Max: slices.Max(value), BaselineMin: slices.Min(baseline), BaselineMax: slices.Max(baseline),
		FloorMin: slices.Min(floor), FloorMax: slices.Max(floor),
	}
	figure.Parts = medians(parts)
	if c.unit == seconds && figure.Floor > figure.Value {
		figure.Note = strings.TrimPrefix(figure.Note+"; the floor is above the value, so it measured something else as well: take the figure again", "; ")
	}
	figure.Ratio, figure.FloorRatio = round(figure.Value/figure.BaselineValue), round(figure.Value/figure.Floor)
	var also []string
	for i, one := range c.also {
		other := median(series[2+i])
		also = append(also, fmt.Sprintf("%s: %s %s, ratio %s (%s)", one.name, short(other), c.unit, short(figure.Value/other), one.what))
	}
	figure.Also = strings.Join(also, "; ")
	return figure, nil
}

// medians are those of each part over all turns.
func medians(turns [][]Part) []Part {
	if len(turns) == 0 {
		return nil
	}
	var all []Part
	for i, part := range turns[0] {
		var series []float64
		for _, turn := range turns {
			series = append(series, turn[i].Value)
		}
		all = append(all, Part{Name: part.Name, Value: round(median(series))})
	}
	return all
}

// timed is a sample in seconds.
func timed(act func(context.Context) error) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := act(ctx)
		return time.Since(start).Seconds(), err
	}
}

// median of a series that is not empty; of an even number of samples the mean of the middle two.
func median(series []float64) float64 {
	sorted := slices.Sorted(slices.Values(series))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// round keeps four digits after the point: a ratio of a thousandth still shows.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// short is a number with three significant digits, and without an exponent.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 0.1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

// table prints the figures, and what stands behind them.
func table(w io.Writer, figures []Figure) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columns, "figure\tvalue\tmin\tmax\tbaseline\tratio\tfloor\tratio\tunit\tsamples\t")
	for _, f := range figures {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", f.ID, short(f.Value), short(f.Min), short(f.Max),
			short(f.BaselineValue), short(f.Ratio), short(f.Floor), short(f.FloorRatio), f.Unit, f.Samples)
	}
	columns.Flush() //nolint:errcheck // standard output is gone: there is nobody to tell
	for _, f := range figures {
		fmt.Fprintf(w, "\n%s: %s\n  baseline: %s: %s\n  floor: %s\n", f.ID, f.What, f.Baseline, f.BaselineWhat, f.FloorWhat)
		if f.Also != "" {
			fmt.Fprintf(w, "  also: %s\n", f.Also)
		}
		if len(f.Parts) > 0 {
			var parts []string
			for _, part := range f.Parts {
				parts = append(parts, part.Name+" "+short(part.Value))
			}
			fmt.Fprintf(w, "  parts, %s: terraform itself %s, %s\n", f.Unit, short(f.Floor), strings.Join(parts, ", "))
		}
		if f.Note != "" {
			fmt.Fprintf(w, "  note: %s\n", f.Note)
		}
	}
}

// write stores the figures as JSON.
func write(file string, figures []Figure) error {
	content, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o600)
}
