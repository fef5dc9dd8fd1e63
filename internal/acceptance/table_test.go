package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// tableHead stands before the rows. The page is written by make test-lab and copied by make docs.
const tableHead = `---
page_title: "What drift looks like"
description: |-
  Faults that were made on two simulated DGX Sparks with real Docker and Ray, what terraform plan said of each, and what apply did.
---

# What drift looks like

Each fault was made on the lab's two nodes, with a cluster of both; the test of the lab writes this page from what it saw. The plan column
has the sentences of ` + "`drift`" + `, the exit code is that of ` + "`terraform plan -detailed-exitcode`" + `, and after every row the next plan was empty.

| what happened | what the plan says | exit code | what apply does |
|---|---|---|---|
`

// write makes the page, and its source below templates, from which make docs would write the same.
func (r *table) write(t *testing.T) {
	t.Helper()
	for _, folder := range []string{"docs", "templates"} {
		path := filepath.Join(repository, folder, "guides", "drift-scenarios.md")
		if err := os.WriteFile(path, []byte(tableHead+strings.Join(r.rows, "\n")+"\n"), 0o644); err != nil { //nolint:gosec // Documentation is for everybody.
			t.Fatal(err)
		}
	}
}
