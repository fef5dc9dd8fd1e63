// Package diagnose maps what logs say, with the evidence of what else was seen, to ranked causes and
// next steps. It is pure. The catalogue of what it knows is data: [Catalogue].
package diagnose

import "strings"

// Finding is the most likely cause of one failure, worded for a deployment of this provider.
type Finding struct {
	// Row of the catalogue of failures, 0 for a cause without a row; ID of the rule.
	Row int
	ID  string
	// Host is where it happened, if the line tells and the evidence knows the address.
	Host string
	// Line is the line of the log that gave it away, without colours and secrets.
	Line string
	// Cause is one or two sentences, Next the step to take.
	Cause, Next string
	// Fatal says that waiting will not help, even if the process still runs.
	Fatal bool
}

// String is the finding as one paragraph.
func (f Finding) String() string { return f.Cause + " " + f.Next }

// Log is the text of a log, or its end.
type Log struct {
	// Name says whose it is, Host where it comes from if its lines do not tell.
	Name, Host, Text string
}

// Explain is the most likely cause in one log.
func Explain(log string, evidence Evidence) (Finding, bool) {
	return ExplainAll([]Log{{Name: "log", Text: log}}, evidence)
}

// ExplainAll is the most likely cause in the logs of all ranks.
func ExplainAll(logs []Log, evidence Evidence) (Finding, bool) {
	scan := NewScan(evidence)
	for _, log := range logs {
		source := scan.source(log.Name, log.Host)
		number := 0
		for line := range strings.SplitSeq(log.Text, "\n") {
			number++
			source.raw(number, strings.ToValidUTF8(line, "\uFFFD"))
		}
		source.end()
	}
	for _, cause := range scan.Report().Causes {
		if cause.Kind == Condition && !cause.Fatal {
			continue // It runs all the same, so it is not why this failed.
		}
		return cause.finding(), true
	}
	return Finding{}, false
}

// finding words a cause for a deployment of this provider.
func (c Cause) finding() Finding {
	found := Finding{Row: c.Row, ID: c.ID, Cause: c.Cause, Next: c.Fix, Fatal: c.Fatal}
	if c.Here != "" {
		found.Next = c.Here
	}
	if len(c.Hosts) > 0 {
		found.Host = c.Hosts[0]
	}
	if len(c.Lines) > 0 {
		found.Line = c.Lines[0].Text
	}
	return found
}
