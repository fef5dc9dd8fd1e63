// Command vulndb writes a vulnerability database that `govulncheck -db file://…` reads, from the
// pinned module golang.org/x/vulndb. It serves machines that reach the Go module mirror but not the
// database's own host. What is newer than the pinned version is not in it.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// The module that holds the reports; its data/osv has one file for each.
const (
	date   = "20261105234957"
	module = "golang.org/x/vulndb@v0.0.0-" + date + "-e22db6528018"
)

// The layout is described at https://go.dev/doc/security/vuln/database.
type (
	entry struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases"`
		Affected []struct {
			Package struct {
				Name string `json:"name"`
			} `json:"package"`
		} `json:"affected"`
	}
	indexDB struct {
		Modified time.Time `json:"modified"`
	}
	indexVuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases,omitempty"`
	}
	// The format allows the fixing version here too, as a hint that spares reading the report.
	moduleVuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
	}
	indexModule struct {
		Path  string       `json:"path"`
		Vulns []moduleVuln `json:"vulns"`
	}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vulndb FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vulndb:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	source, err := download()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(source, "data", "osv", "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no reports in " + source)
	}
	for _, sub := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			return err
		}
	}
	var entries []entry
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "ID", e.ID+".json"), text, 0o644); err != nil {
			return err
		}
		entries = append(entries, e)
	}
	// The host stamps each report when it publishes; in the module only the whole has a date.
	modified, err := time.Parse("20060102150405", date)
	if err != nil {
		return err
	}
	vulns, modules := index(entries)
	// db.json last: where it is, the rest is whole.
	return errors.Join(
		write(filepath.Join(folder, "index", "vulns.json"), vulns),
		write(filepath.Join(folder, "index", "modules.json"), modules),
		write(filepath.Join(folder, "index", "db.json"), indexDB{Modified: modified}),
	)
}

// download returns the folder of the module in the module cache.
func download() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &result); jsonErr != nil {
		return "", errors.Join(fmt.Errorf("go mod download %s", module), err, jsonErr)
	}
	if result.Error != "" {
		return "", fmt.Errorf("go mod download %s: %s", module, result.Error)
	}
	return result.Dir, nil
}

// index makes the two indexes of the database, by report and by module.
func index(entries []entry) ([]indexVuln, []indexModule) {
	var (
		vulns  []indexVuln
		byPath = map[string]map[string]moduleVuln{}
	)
	for _, e := range entries {
		vulns = append(vulns, indexVuln{ID: e.ID, Modified: e.Modified, Aliases: e.Aliases})
		for _, affected := range e.Affected {
			path := affected.Package.Name
			if byPath[path] == nil {
				byPath[path] = map[string]moduleVuln{}
			}
			byPath[path][e.ID] = moduleVuln{ID: e.ID, Modified: e.Modified}
		}
	}
	modules := make([]indexModule, 0, len(byPath))
	for path, set := range byPath {
		m := indexModule{Path: path}
		for _, vuln := range set {
			m.Vulns = append(m.Vulns, vuln)
		}
		slices.SortFunc(m.Vulns, func(a, b moduleVuln) int { return cmp.Compare(a.ID, b.ID) })
		modules = append(modules, m)
	}
	slices.SortFunc(vulns, func(a, b indexVuln) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(modules, func(a, b indexModule) int { return cmp.Compare(a.Path, b.Path) })
	return vulns, modules
}

func write(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
