//go:build lab

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
