package diagnose

import (
	"cmp"
	"slices"
	"strings"
)

// Cause is something that went wrong, with its evidence and the way out.
type Cause struct {
	// Row of the catalogue of failures; 0 for a cause without a row.
	Row int
	// ID of the rule.
	ID   string
	Kind Kind
	// Hosts where it was seen, as far as that is known.
	Hosts []string
	// Cause is one or two sentences, Fix the next step, Here the next step for a deployment of this
	// provider; it is empty where there is none of its own.
	Cause, Fix, Here string
	// Lines are the first that gave it away, Count all of them.
	Lines []Line
	Count int
	Fatal bool

	// at is when, source the log where it was first seen.
	at     int64
	source int
	// explains are the IDs of what a contributor makes, alone that it counts without them.
	explains []string
	alone    bool
}

// Report is a diagnosis: causes from the most to the least likely, and what may be ignored.
type Report struct {
	Causes   []Cause
	Harmless []Cause
	// Lines and Bytes were read.
	Lines, Bytes int64
}

// Report judges all that was read.
func (s *Scan) Report() Report {
	found := s.findings()
	for _, one := range evidenceCauses(s.evidence) {
		found = merge(found, one)
	}
	present := map[string]bool{}
	for _, one := range found {
		present[one.ID] = true
	}
	found = slices.DeleteFunc(found, func(one Cause) bool {
		if one.ID == "rank-died" && present[anyException] || one.ID == "engine-dead" && present["engine-failed"] {
			return true // The other says more.
		}
		if one.Kind == Mechanism && len(one.explains) > 0 {
			return !slices.ContainsFunc(one.explains, func(id string) bool { return present[id] })
		}
		// With too few GPUs in all, vLLM waits for a group whatever the addresses are.
		return one.ID == "placement" && one.Row == 1 && s.evidence.Ray == nil && present["missing-worker"]
	})
	report := Report{Lines: s.lines, Bytes: s.bytes}
	var aside []Cause
	for _, one := range found {
		switch one.Kind {
		case Harmless, Note:
			aside = append(aside, one)
		case Contributor, Condition:
			switch {
			case slices.ContainsFunc(one.explains, func(id string) bool { return present[id] }):
				one.Kind = Root
				one.at, one.source = -1, -1 // Before what it made.
				report.Causes = append(report.Causes, one)
			case one.alone, one.Kind == Condition:
				report.Causes = append(report.Causes, one)
			}
		default:
			report.Causes = append(report.Causes, one)
		}
	}
	report.Causes = ranked(report.Causes)
	report.Harmless = besides(aside, report.Causes)
	return report
}

// findings are the symptoms of all logs, one of a kind.
func (s *Scan) findings() []Cause {
	var found []Cause
	for _, from := range s.sources {
		for index := range s.rules {
			seen := from.seen[index]
			if seen == nil || s.overcomeElsewhere(from, seen, s.rules[index].Kind) {
				continue
			}
			rule := s.rules[index].Rule
			one := Cause{
				Row: seen.answer.Row, ID: rule.ID, Kind: rule.Kind, Fatal: rule.Fatal,
				Cause: seen.answer.Cause, Fix: seen.answer.Fix, Here: seen.answer.Here,
				Lines: seen.lines, Count: seen.count, at: seen.first, source: from.index, explains: rule.Explains, alone: rule.Alone,
			}
			for _, line := range seen.lines {
				if line.Host != "" && !slices.Contains(one.Hosts, line.Host) {
					one.Hosts = append(one.Hosts, line.Host)
				}
			}
			found = merge(found, one)
		}
	}
	return found
}

// overcomeElsewhere says whether the server, in another log, became ready after a symptom.
func (s *Scan) overcomeElsewhere(from *source, seen *sighting, kind Kind) bool {
	return seen.last > 0 && overcome(kind) && slices.ContainsFunc(s.sources, func(other *source) bool {
		return other != from && other.healthy > 1 && seen.last <= other.healthy
	})
}

// merge adds a finding, to one of the same kind if there is one: the same rule, or the same row.
func merge(found []Cause, one Cause) []Cause {
	at := slices.IndexFunc(found, func(other Cause) bool {
		same := other.ID == one.ID && other.Row == one.Row || other.Row == one.Row && one.Row != 0
		return same && (other.Kind >= Note) == (one.Kind >= Note)
	})
	if at < 0 {
		return append(found, one)
	}
	into := &found[at]
	if one.Kind < into.Kind || one.Kind == into.Kind && one.at != 0 && one.at < into.at {
		*into, one = one, *into
	}
	into.Lines, into.Hosts = slices.Concat(into.Lines, one.Lines), slices.Concat(into.Hosts, one.Hosts)
	into.Count += one.Count
	into.Fatal = into.Fatal || one.Fatal
	slices.Sort(into.Hosts)
	into.Hosts = slices.Compact(into.Hosts)
	into.Lines = slices.CompactFunc(into.Lines, func(a, b Line) bool { return a.File == b.File && a.Number == b.Number })
	into.Lines = into.Lines[:min(len(into.Lines), 2*keptLines)]
	return found
}

// ranked orders causes. What only tells how something ended counts when nothing tells why; within one
// kind the earliest is first: by time if every log tells it, else in the order of the logs.
func ranked(causes []Cause) []Cause {
	strongest := Condition
	timed := true
	for _, one := range causes {
		strongest = min(strongest, one.Kind)
		timed = timed && one.at != 0
	}
	causes = slices.DeleteFunc(causes, func(one Cause) bool {
		return (one.Kind == Mechanism || one.Kind == Consequence) && strongest < one.Kind
	})
	slices.SortStableFunc(causes, func(a, b Cause) int {
		when := cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.line(), b.line()))
		if timed {
			when = cmp.Or(cmp.Compare(a.at, b.at), when)
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), when, strings.Compare(a.ID, b.ID))
	})
	return causes
}

// line is the number of the first line, 0 without one.
func (c Cause) line() int {
	if len(c.Lines) == 0 {
		return 0
	}
	return c.Lines[0].Number
}

// besides are the harmless symptoms whose lines no cause took.
func besides(harmless, causes []Cause) []Cause {
	taken := map[Line]bool{}
	for _, one := range causes {
		for _, line := range one.Lines {
			taken[line] = true
		}
	}
	return slices.DeleteFunc(harmless, func(one Cause) bool {
		return !slices.ContainsFunc(one.Lines, func(line Line) bool { return !taken[line] })
	})
}
