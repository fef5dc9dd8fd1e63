package clitest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Plan is a plan as `plan -detailed-exitcode` and `show -json` tell it. Changes is empty unless it
// exits with 2.
type Plan struct {
	Result
	Changes map[string]Change
}

// Change is what is planned for one resource.
type Change struct {
	Actions []string
	Before  map[string]any
	After   map[string]any
	Unknown map[string]any
}

// Plan plans with -detailed-exitcode.
func (w *Workspace) Plan(args ...string) Plan {
	w.t.Helper()
	plan := Plan{Result: w.Run(append([]string{"plan", "-detailed-exitcode", "-no-color", "-out=planned"}, args...)...), Changes: map[string]Change{}}
	if plan.Exit != 2 {
		return plan // an error, or nothing that show could add
	}
	shown := w.Run("show", "-json", "planned")
	if shown.Exit != 0 {
		w.t.Fatalf("show: exit %d\n%s", shown.Exit, shown.Text())
	}
	var document struct {
		ResourceChanges []struct {
			Address string `json:"address"`
			Change  struct {
				Actions      []string       `json:"actions"`
				Before       map[string]any `json:"before"`
				After        map[string]any `json:"after"`
				AfterUnknown map[string]any `json:"after_unknown"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(shown.Stdout), &document); err != nil {
		w.t.Fatalf("show -json: %v", err)
	}
	for _, one := range document.ResourceChanges {
		plan.Changes[one.Address] = Change{Actions: one.Change.Actions, Before: one.Change.Before, After: one.Change.After, Unknown: one.Change.AfterUnknown}
	}
	return plan
}

// Empty expects exit code 0.
func (w *Workspace) Empty(args ...string) Plan {
	w.t.Helper()
	plan := w.Plan(args...)
	if plan.Exit != 0 {
		w.t.Fatalf("plan: exit %d, 0 expected\n%s", plan.Exit, plan.Text())
	}
	return plan
}

// Drifted expects exit code 2.
func (w *Workspace) Drifted(args ...string) Plan {
	w.t.Helper()
	plan := w.Plan(args...)
	if plan.Exit != 2 {
		w.t.Fatalf("plan: exit %d, 2 expected\n%s", plan.Exit, plan.Text())
	}
	return plan
}

// PlanFails expects exit code 1 and returns the text without line breaks.
func (w *Workspace) PlanFails(args ...string) string {
	w.t.Helper()
	plan := w.Plan(args...)
	if plan.Exit != 1 {
		w.t.Fatalf("plan: exit %d, 1 expected\n%s", plan.Exit, plan.Text())
	}
	return Unwrap(plan.Text())
}

// Lines are the drift sentences as a CI job reads them: "<address>: <sentence>", sorted.
func (p Plan) Lines() []string {
	lines := []string{}
	for address, change := range p.Changes {
		sentences, _ := change.Before["drift"].([]any)
		for _, sentence := range sentences {
			lines = append(lines, fmt.Sprintf("%s: %v", address, sentence))
		}
	}
	slices.Sort(lines)
	return lines
}

// Actions are the addresses that the plan touches with what it does: "update", "create",
// "delete create".
func (p Plan) Actions() map[string]string {
	actions := map[string]string{}
	for address, change := range p.Changes {
		if action := strings.Join(change.Actions, " "); action != "no-op" {
			actions[address] = action
		}
	}
	return actions
}

// Unknown is the planned value of something that only apply will know.
const Unknown = "(known after apply)"

// Value returns the old and the new value at a path, such as "nodes", "10.1.230.181", "address".
func (p Plan) Value(address string, path ...string) (before, after any) {
	change := p.Changes[address]
	if unknown, ok := at(change.Unknown, path).(bool); ok && unknown {
		return at(change.Before, path), Unknown
	}
	return at(change.Before, path), at(change.After, path)
}

func at(value any, path []string) any {
	for _, step := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return value // an unknown parent covers its children
		}
		value = object[step]
	}
	return value
}

// Diff says how a value differs from what was expected; empty if it does not.
func (p Plan) Diff(address string, wantBefore, wantAfter any, path ...string) string {
	before, after := p.Value(address, path...)
	if reflect.DeepEqual(before, wantBefore) && reflect.DeepEqual(after, wantAfter) {
		return ""
	}
	return fmt.Sprintf("%s.%s: %v -> %v, expected %v -> %v", address, strings.Join(path, "."), before, after, wantBefore, wantAfter)
}
