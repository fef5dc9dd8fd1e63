package acceptance

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// fault is one thing that a scenario breaks.
type fault struct {
	name string
	node int
}

// scenario is one kind of drift: what is broken, what the plan says, and what apply makes of it. All
// texts go through substitute.
type scenario struct {
	name   string
	faults []fault
	// edit, if set, changes the configuration that is planned after the faults.
	edit func(*config)
	// drift are the drift lines as a CI job reads them, leaves all values that the plan changes; one a
	// line, in any order. Exit codes of containers are written as N.
	drift, leaves string
	// says are sentences that the text of the plan must hold.
	says []string
	// stops are sentences of apply's error. Nothing may have changed then, and healing the world, not
	// an apply, makes the plan empty again. Without them apply repairs.
	stops []string
	// replaced are the containers that apply replaces, makes or removes.
	replaced string
	// returns says that healing the world afterwards is drift again, as with a followed address.
	returns bool
}

// stage is an applied workspace in a world; every scenario leaves it applied and whole.
type stage struct {
	w      world
	ws     *clitest.Workspace
	config config
	// within bounds an apply: nothing may wait for minutes.
	within time.Duration
	// table, if set, takes down what is seen.
	table *table
}

// in is the stage whose failures belong to a subtest.
func (s stage) in(t *testing.T) stage {
	s.ws = s.ws.In(t)
	return s
}

// play runs a scenario.
func (s stage) play(t *testing.T, one scenario) {
	for _, broken := range one.faults {
		s.w.fault(t, broken.name, broken.node)
	}
	edited := s.config
	if one.edit != nil {
		one.edit(&edited)
		s.ws.Config(edited.in(s.w))
	}
	plan := s.ws.Drifted()
	s.compare(t, "drift lines", one.drift, plan.Lines())
	s.compare(t, "planned values", one.leaves, plan.Leaves())
	for _, address := range slices.Sorted(maps.Keys(plan.Actions())) {
		if action := plan.Actions()[address]; action != "update" {
			t.Errorf("%s: %s is planned, an update was expected", address, action)
		}
		if after, _ := plan.Changes[address].After["drift"].([]any); len(after) > 0 {
			t.Errorf("%s: drift is planned to be %v", address, after)
		}
	}
	s.says(t, "plan", clitest.Unwrap(plan.Text()), one.says)
	var lines []string
	for _, line := range plan.Lines() {
		lines = append(lines, codes.ReplaceAllString(line, "code N"))
	}
	if len(one.stops) > 0 {
		s.refused(t, one)
		s.table.add(one.name, lines, "refuses before its first change; empty once the host is mended")
		return
	}
	s.repaired(t, one)
	s.table.add(one.name, lines, "replaces "+cmp.Or(strings.Join(s.wanted(one), ", "), "nothing"))
}

// wanted are the containers that an apply replaces.
func (s stage) wanted(one scenario) []string {
	wanted := []string{}
	for _, name := range strings.Fields(substitute(s.w, one.replaced)) {
		if !s.config.clusterOnly || !strings.Contains(name, "/vllm-") {
			wanted = append(wanted, name)
		}
	}
	slices.Sort(wanted)
	return wanted
}

// repaired proves that one apply of the saved plan makes the next one empty.
func (s stage) repaired(t *testing.T, one scenario) {
	t.Helper()
	before := s.w.containers(t)
	if took := s.ws.ApplyPlanned().Took; took > s.within {
		t.Errorf("apply took %s, at most %s was expected", took, s.within)
	}
	if diff := gocmp.Diff(s.wanted(one), changed(before, s.w.containers(t))); diff != "" {
		t.Errorf("replaced containers (-want +got):\n%s", diff)
	}
	s.ws.Empty()
	if one.returns || one.edit != nil {
		s.restore(t, one)
		s.ws.Apply()
		s.ws.Empty()
	}
}

// refused proves that apply stops before its first change, and that a healed world is whole.
func (s stage) refused(t *testing.T, one scenario) {
	t.Helper()
	unchanged := s.watch(t)
	s.says(t, "apply", s.ws.ApplyPlannedFails(), one.stops)
	unchanged()
	s.restore(t, one)
	s.ws.Empty()
}

// restore brings world and configuration back to what the stage stands on.
func (s stage) restore(t *testing.T, one scenario) {
	t.Helper()
	s.w.heal(t)
	if one.edit != nil {
		s.ws.Config(s.config.in(s.w))
	}
}

var codes = regexp.MustCompile(`code \d+`)

// compare compares lines with an expected text. Lines of the deployment are not expected where there
// is none. What follows from a fault takes real programs a while: lines with a "?" may be missing in
// the lab, and those with a "~" may be there in the lab alone.
func (s stage) compare(t *testing.T, what, text string, got []string) {
	t.Helper()
	got = slices.Clone(got)
	for i, line := range got {
		got[i] = codes.ReplaceAllString(line, "code N")
	}
	wanted := []string{}
	for line := range strings.Lines(substitute(s.w, text)) {
		line = strings.TrimSpace(line)
		line, late := strings.CutPrefix(line, "? ")
		line, real := strings.CutPrefix(line, "~ ")
		missing := !slices.Contains(got, line)
		if line == "" || late && missing && !s.w.exact() || real && (missing || s.w.exact()) || s.config.clusterOnly && strings.HasPrefix(line, "vllm_deployment.") {
			continue
		}
		wanted = append(wanted, line)
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if diff := gocmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// says looks for sentences in a text without line breaks.
func (s stage) says(t *testing.T, what, text string, sentences []string) {
	t.Helper()
	for _, sentence := range sentences {
		if s.config.clusterOnly && strings.HasPrefix(sentence, "Plan: ") {
			continue // It counts the deployment.
		}
		if sentence = substitute(s.w, sentence); !strings.Contains(text, sentence) {
			t.Errorf("%s does not say %q:\n%s", what, sentence, text)
		}
	}
}

// watch returns a function that fails if the provider changed anything on any node meanwhile.
func (s stage) watch(t *testing.T) func() {
	t.Helper()
	return watch(t, s.w)
}

func watch(t *testing.T, w world) func() {
	t.Helper()
	containers := w.containers(t)
	journal, keeps := w.(interface{ journal() []string })
	var lines []string
	if keeps {
		lines = journal.journal()
	}
	return func() {
		t.Helper()
		if names := changed(containers, w.containers(t)); len(names) > 0 {
			t.Errorf("containers were changed: %q", names)
		}
		if keeps {
			if diff := gocmp.Diff(lines, journal.journal()); diff != "" {
				t.Errorf("something was changed on the nodes:\n%s", diff)
			}
		}
	}
}

// changed names the containers that are new, other ones, or gone, sorted.
func changed(before, after map[string]string) []string {
	names := []string{}
	for name, id := range after {
		if before[name] != id {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, stayed := after[name]; !stayed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
