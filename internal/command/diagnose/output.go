package diagnose

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
)

// width is that of the text, in characters.
const width = 100

// text is a report for people.
func text(report diagnose.Report, files int) string {
	var out strings.Builder
	for i, cause := range report.Causes {
		title := fmt.Sprintf("Cause %d of %d", i+1, len(report.Causes))
		if len(report.Causes) == 1 {
			title = "Cause"
		}
		if len(cause.Hosts) > 0 {
			title += " on " + strings.Join(cause.Hosts, ", ")
		}
		fmt.Fprintf(&out, "%s (%s)\n", title, label(cause))
		out.WriteString(wrapped("  ", "  ", cause.Cause))
		out.WriteString(wrapped("  Fix: ", "       ", cause.Fix))
		if cause.Here != "" {
			out.WriteString(wrapped("  With this provider: ", "       ", cause.Here))
		}
		lines(&out, cause)
		out.WriteString("\n")
	}
	if len(report.Causes) == 0 {
		fmt.Fprintf(&out, "No cause found in %s of %s.\n", counted(report.Lines, "line"), counted(int64(files), "log"))
		out.WriteString(wrapped("", "", "If something is wrong all the same, give the logs of all ranks, from the start of the server on."))
		out.WriteString("\n")
	}
	if len(report.Harmless) > 0 {
		out.WriteString("Harmless\n")
		for _, one := range report.Harmless {
			out.WriteString(wrapped("  - ", "    ", one.Cause))
			lines(&out, one)
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// label is "row 57, free-memory".
func label(cause diagnose.Cause) string {
	if cause.Row == 0 {
		return cause.ID
	}
	return fmt.Sprintf("row %d, %s", cause.Row, cause.ID)
}

// lines writes what gave a cause away.
func lines(out *strings.Builder, cause diagnose.Cause) {
	for _, line := range cause.Lines {
		fmt.Fprintf(out, "    %s:%d: %s\n", line.File, line.Number, line.Text)
	}
	if more := cause.Count - len(cause.Lines); more > 0 {
		fmt.Fprintf(out, "    and %s more\n", counted(int64(more), "line"))
	}
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// wrapped breaks a text into lines; the first has another indent than the others.
func wrapped(first, rest, text string) string {
	var out strings.Builder
	line := first
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > width {
			out.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return out.String() + line + "\n"
}

// The form of -json. Fields are only ever added; another meaning gets another version.
type (
	document struct {
		Version  int           `json:"version"`
		Verdict  string        `json:"verdict"` // causes, harmless, nothing
		Causes   []cause       `json:"causes"`
		Harmless []explanation `json:"harmless"`
		Errors   []string      `json:"errors"`
		Lines    int64         `json:"lines"`
		Bytes    int64         `json:"bytes"`
	}
	explanation struct {
		Row         *int            `json:"row"`
		Rule        string          `json:"rule"`
		Explanation string          `json:"explanation"`
		Evidence    []diagnose.Line `json:"evidence"`
		Count       int             `json:"count"`
	}
	cause struct {
		Row      *int            `json:"row"`
		Rule     string          `json:"rule"`
		Hosts    []string        `json:"hosts"`
		Cause    string          `json:"cause"`
		Fix      string          `json:"fix"`
		Provider string          `json:"fix_with_provider,omitempty"`
		Evidence []diagnose.Line `json:"evidence"`
		Count    int             `json:"count"`
	}
)

// encoded is a report for programs.
func encoded(report diagnose.Report, unread []string) string {
	out := document{
		Version: 1, Verdict: "nothing", Causes: []cause{}, Harmless: []explanation{}, Errors: append([]string{}, unread...),
		Lines: report.Lines, Bytes: report.Bytes,
	}
	for _, one := range report.Causes {
		out.Causes = append(out.Causes, cause{
			Row: row(one.Row), Rule: one.ID, Hosts: append([]string{}, one.Hosts...), Cause: one.Cause, Fix: one.Fix, Provider: one.Here,
			Evidence: append([]diagnose.Line{}, one.Lines...), Count: one.Count,
		})
	}
	for _, one := range report.Harmless {
		out.Harmless = append(out.Harmless, explanation{
			Row: row(one.Row), Rule: one.ID, Explanation: one.Cause, Evidence: append([]diagnose.Line{}, one.Lines...), Count: one.Count,
		})
	}
	switch {
	case len(out.Causes) > 0:
		out.Verdict = "causes"
	case len(out.Harmless) > 0:
		out.Verdict = "harmless"
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Sprintf("{\"version\": 1, \"errors\": [%q]}\n", err)
	}
	return string(text) + "\n"
}

// row is null for what has none.
func row(number int) *int {
	if number == 0 {
		return nil
	}
	return &number
}
