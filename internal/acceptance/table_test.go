package acceptance

import (
	"fmt"
	"slices"
	"strings"
)

// table is what was seen of scenarios as they were played, for people to read.
type table struct{ rows []string }

// add writes down one scenario: the drift lines and the exit code of its plan, and what apply did.
func (r *table) add(name string, lines []string, applied string) {
	if r == nil {
		return
	}
	lines = slices.Clone(lines)
	slices.Sort(lines)
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	for i, line := range lines {
		lines[i] = "`" + cell.Replace(line) + "`"
	}
	r.rows = append(r.rows, fmt.Sprintf("| %s | %s | 2 | %s |", name, strings.Join(lines, "<br>"), cell.Replace(applied)))
}
