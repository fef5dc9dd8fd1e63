package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// counted is a side whose samples are the given values, one after the other.
func counted(name string, values ...float64) side {
	next := 0
	return side{name: name, what: name + " explained", sample: func(context.Context) (float64, error) {
		next++
		return values[next-1], nil
	}}
}

func TestContest(t *testing.T) {
	one := contest{
		id: "noop", unit: seconds, samples: 3,
		value: counted("ours", 2, 9, 3), baseline: counted("theirs", 12, 10, 11), floor: counted("least", 1, 2, 1.5),
		also: []side{counted("other", 6, 6, 6)},
	}
	var order []string
	figure, err := one.run(t.Context(), func(_ string, arguments ...any) {
		if name, ok := arguments[3].(string); ok {
			order = append(order, name)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if figure.Value != 3 || figure.BaselineValue != 11 || figure.Floor != 1.5 || figure.Ratio != 0.2727 || figure.FloorRatio != 2 {
		t.Errorf("figure: %+v", figure)
	}
	if figure.Min != 2 || figure.Max != 9 || figure.BaselineMin != 10 || figure.FloorMax != 2 {
		t.Errorf("range: %+v", figure)
	}
	if !strings.Contains(figure.Also, "other: 6.00 s, ratio 0.50") {
		t.Errorf("also: %q", figure.Also)
	}
	if got := strings.Join(order[:5], " "); got != "least theirs other ours least" {
		t.Errorf("the sides take turns, but the order is %s", got)
	}

	var text strings.Builder
	table(&text, []Figure{figure})
	if !strings.Contains(text.String(), "noop   3.00  2.00  9.00      11.0   0.27   1.50   2.00     s        3") {
		t.Errorf("table:\n%s", text.String())
	}
	file := filepath.Join(t.TempDir(), "build", "bench.json")
	if err := write(file, []Figure{figure}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stored []map[string]any
	if err := json.Unmarshal(content, &stored); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "value", "unit", "baseline", "baseline_value", "ratio", "floor", "floor_ratio"} {
		if _, found := stored[0][name]; !found {
			t.Errorf("bench.json has no %s: %s", name, content)
		}
	}
}

func TestContestFails(t *testing.T) {
	broken := side{name: "theirs", sample: func(context.Context) (float64, error) { return 0, errors.New("boom") }}
	_, err := contest{samples: 1, value: counted("ours", 1), baseline: broken, floor: counted("least", 1)}.run(t.Context(), func(string, ...any) {})
	if err == nil || err.Error() != "theirs: boom" {
		t.Errorf("error: %v", err)
	}
}

// TestExitCodes: what cannot start is 2, with one sentence.
func TestExitCodes(t *testing.T) {
	t.Chdir(t.TempDir()) // where there is no lab/info
	for arguments, want := range map[string]string{
		"":            "bench: cannot start: the lab must be up: make lab\n",
		"-only speed": "bench: cannot start: there is no figure speed; there are: noop_plan_16n, noop_plan_64n, noop_plan_64n_at_once, facts, cluster_up, apply_warm, noop_plan_2n, noop_plan_2n_20ms, ssh_handshakes, gate, weights_copy_2n\n",
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), strings.Fields(arguments), &stdout, &stderr); code != 2 {
			t.Errorf("bench %s: exit code %d", arguments, code)
		}
		if stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("bench %s said %q", arguments, stderr.String())
		}
	}
}

// TestContestLimit: no turn begins that would end after the limit.
func TestContestLimit(t *testing.T) {
	slow := side{name: "ours", sample: func(context.Context) (float64, error) {
		time.Sleep(20 * time.Millisecond)
		return 1, nil
	}}
	figure, err := contest{samples: 9, limit: 50 * time.Millisecond, value: slow, baseline: counted("theirs", 1, 1), floor: counted("least", 1, 1)}.
		run(t.Context(), func(string, ...any) {})
	if err != nil || figure.Samples < 1 || figure.Samples > 2 {
		t.Errorf("%d samples, error %v", figure.Samples, err)
	}
}

func TestMedian(t *testing.T) {
	for _, one := range []struct {
		series []float64
		want   float64
	}{{[]float64{7}, 7}, {[]float64{3, 1}, 2}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(one.series); got != one.want {
			t.Errorf("median of %v is %v", one.series, got)
		}
	}
}

// TestContestParts: parts are taken once a turn, printed behind Terraform's own share, and stored.
func TestContestParts(t *testing.T) {
	turn := 0.0
	figure, err := contest{
		id: "noop", unit: seconds, samples: 3,
		value: counted("ours", 2, 2, 2), baseline: counted("theirs", 4, 4, 4), floor: counted("least", 1, 1, 1),
		parts: func(context.Context) ([]Part, error) {
			turn++
			return []Part{{"login", turn}, {"look", 10 * turn}}, nil
		},
	}.run(t.Context(), func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Part{{"login", 2}, {"look", 20}}; !slices.Equal(figure.Parts, want) {
		t.Errorf("parts are %v, want %v", figure.Parts, want)
	}
	var text strings.Builder
	table(&text, []Figure{figure})
	if want := "parts, s: terraform itself 1.00, login 2.00, look 20.0\n"; !strings.Contains(text.String(), want) {
		t.Errorf("table:\n%s", text.String())
	}
}

// TestContestNotesAFloorAboveTheValue: a floor that took longer than what it bounds bounds nothing.
func TestContestNotesAFloorAboveTheValue(t *testing.T) {
	for name, test := range map[string]struct {
		unit  string
		floor float64
		noted bool
	}{
		"below":              {seconds, 1, false},
		"above":              {seconds, 3, true},
		"where more is fast": {megabytesS, 3, false},
	} {
		figure, err := contest{unit: test.unit, samples: 1, value: counted("ours", 2), baseline: counted("theirs", 4), floor: counted("least", test.floor)}.
			run(t.Context(), func(string, ...any) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(figure.Note, "the floor is above the value"); got != test.noted {
			t.Errorf("%s: note %q", name, figure.Note)
		}
	}
}
