package diagnose

import (
	"regexp"
	"strings"
	"sync"
)

const (
	// keptLines is how many lines of one symptom are shown; all are counted.
	keptLines = 3
	// shownText is how much of a line is shown, in bytes.
	shownText = 400
)

// Scan finds symptoms in logs. It is fed line by line, so that a log of any size needs little memory.
type Scan struct {
	evidence Evidence
	catalogue
	sources []*source
	lines   int64
	bytes   int64
}

// compiled is a rule that is ready to be matched.
type compiled struct {
	Rule
	pattern, detail *regexp.Regexp
}

// catalogue is all rules with the finder of their literal texts. What comes after the rules' owners are the marks.
type catalogue struct {
	rules []compiled
	texts *finder
}

// ready is the catalogue, made ready once.
var ready = sync.OnceValue(func() catalogue {
	var rules []compiled
	var texts [][]string
	marks := courseMarks()
	for _, section := range Catalogue() {
		for _, rule := range section.Rules {
			one := compiled{Rule: rule}
			if rule.Pattern != "" {
				one.pattern = regexp.MustCompile(rule.Pattern)
			}
			if rule.Detail != "" {
				one.detail = regexp.MustCompile(rule.Detail)
			}
			rules = append(rules, one)
			texts = append(texts, rule.Any)
			marks = append(marks, rule.Until...)
		}
	}
	return catalogue{rules: rules, texts: newFinder(append(texts, marks))}
})

// NewScan starts a diagnosis with what is known beside the logs.
func NewScan(evidence Evidence) *Scan {
	return &Scan{evidence: evidence, catalogue: ready()}
}

// Line is a line of a log that gave something away, without colours and secrets.
type Line struct {
	File   string `json:"file"`
	Number int    `json:"line"`
	Host   string `json:"host,omitempty"`
	Text   string `json:"text"`
}

// sighting is one symptom in one log.
type sighting struct {
	answer Answer
	lines  []Line
	count  int
	// first and last tell when, as stamp does; 0 if the log has no times.
	first, last int64
}

// waiting is a message whose further lines are still to come.
type waiting struct {
	rule    int
	process string
	hit     Hit
	line    Line
	stamp   int64
	missing int
}

// source is one log.
type source struct {
	scan       *Scan
	index      int
	name, host string
	seen       map[int]*sighting
	pending    []waiting
	// began and now are times in the log: of the last start, and of the last line that has one.
	began, now int64
	// healthy is when a server became ready, stopped when it was told to end; 0 if it was not.
	healthy, stopped int64
	stopping         bool
	spread, fast     bool
	kernel           string
	course           course
	// found is whose texts are in the line, kept to be used again; before is the line before.
	found  []int
	before string
}

// source adds a log.
func (s *Scan) source(name, host string) *source {
	added := &source{scan: s, index: len(s.sources), name: name, host: host, seen: map[int]*sighting{}}
	s.sources = append(s.sources, added)
	return added
}

// raw takes a line as it stands in the file.
func (s *source) raw(number int, text string) {
	for part := range strings.SplitSeq(text, "\r") {
		part = withoutColours(part)
		if !strings.HasPrefix(part, "{") {
			if part != "" {
				s.line(number, part, "")
			}
			continue
		}
		lines, host := unpacked(part)
		for _, line := range lines {
			if line != "" {
				s.line(number, line, host)
			}
		}
	}
}

// line takes one line.
func (s *source) line(number int, text, host string) {
	if at := stamp(text); at > 0 {
		s.now = at
		if s.began == 0 {
			s.began = at
		}
	}
	s.follow(text)
	s.found = s.scan.texts.find(text, s.found[:0])
	s.wrapped(number, text, host)
	if count := len(s.found); count > 0 && s.found[count-1] == len(s.scan.rules) {
		s.found = s.found[:count-1]
		s.marks(text)
		s.progress(number, text)
		s.overcame(text)
	}
	told := false
	for _, index := range s.found {
		if s.scan.rules[index].ID != anyException {
			told = s.match(index, number, text, host) || told
		}
	}
	for _, index := range s.found {
		if s.scan.rules[index].ID == anyException && !told {
			s.match(index, number, text, host)
		}
	}
}

// wrapped looks for a message that a terminal broke into two lines, inside a word or between two.
func (s *source) wrapped(number int, text, host string) {
	before := s.before
	s.before = text
	if len(before) < 60 || !continues(text) {
		return
	}
	end, start := before[len(before)-60:], text[:min(len(text), 60)]
	for _, between := range []string{"", " "} {
		for _, index := range s.scan.texts.find(end+between+start, nil) {
			if index < len(s.scan.rules) && !containsAny(before, s.scan.rules[index].Any) && !containsAny(text, s.scan.rules[index].Any) {
				s.match(index, number-1, before+between+text, host)
			}
		}
	}
}

// continues says whether a line does not start as lines of logs do.
func continues(text string) bool {
	if strings.ContainsAny(text[:1], "([{<") || len(text) > 4 && text[4] == '-' {
		return false
	}
	for _, level := range []string{"INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "Traceback"} {
		if strings.HasPrefix(text, level) {
			return false
		}
	}
	return true
}

// overcame forgets what a line says is over.
func (s *source) overcame(text string) {
	for index := range s.seen {
		if containsAny(text, s.scan.rules[index].Until) {
			delete(s.seen, index)
		}
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// match applies a rule whose literal text is in the line, and says whether it is the rule's symptom.
func (s *source) match(index, number int, text, host string) bool {
	rule := &s.scan.rules[index]
	text = said(text)
	if !containsAny(text, rule.Any) || containsAny(text, rule.Unless) {
		return false
	}
	if s.stopping && (rule.Kind == Mechanism || rule.Kind == Consequence) {
		return false // What ends because it was told to end.
	}
	var groups []string
	if rule.pattern != nil {
		if groups = rule.pattern.FindStringSubmatch(text); groups == nil {
			return false
		}
	}
	if rule.detail != nil {
		if groups = rule.detail.FindStringSubmatch(text); groups == nil {
			groups = make([]string, rule.detail.NumSubexp()+1)
		}
	}
	process, at := origin(text)
	if at == "" {
		at = host
	}
	if known := s.scan.evidence.hostOf(at); known != "" {
		at = known
	}
	if at == "" {
		at = s.host
	}
	line := Line{File: s.name, Number: number, Host: at, Text: shown(text)}
	hit := Hit{Match: groups, Text: text, Host: at, Spread: s.spread, FastLoader: s.fast, Kernel: s.kernel, Restarted: s.stopped > 0 && s.now-s.stopped < 180}
	if s.began > 0 && s.now > s.began {
		hit.Waited = s.now - s.began
	}
	if rule.Follow > 0 {
		s.pending = append(s.pending, waiting{rule: index, process: process, hit: hit, line: line, stamp: s.now, missing: rule.Follow})
		return true
	}
	s.saw(index, hit, line, s.now)
	return true
}

// follow gives a line to the messages that it may belong to.
func (s *source) follow(text string) {
	if len(s.pending) == 0 {
		return
	}
	process, _ := origin(text)
	rest := s.pending[:0]
	for _, one := range s.pending {
		if one.process == process || process == "" && continues(text) {
			one.hit.Text += "\n" + text
			one.missing--
		}
		if one.missing > 0 {
			rest = append(rest, one)
			continue
		}
		s.saw(one.rule, one.hit, one.line, one.stamp)
	}
	s.pending = rest
}

// saw records a symptom, unless its rule declines.
func (s *source) saw(index int, hit Hit, line Line, at int64) {
	found := s.seen[index]
	if found == nil {
		answer := s.scan.rules[index].answer(hit, s.scan.evidence)
		if answer.Declined {
			return
		}
		found = &sighting{answer: answer, first: at}
		s.seen[index] = found
	}
	found.count++
	found.last = at
	if len(found.lines) < keptLines {
		found.lines = append(found.lines, line)
	}
	if s.scan.rules[index].ID == "free-memory" {
		s.shrinks(hit, line)
	}
}

// end takes what is left when a log is over.
func (s *source) end() {
	for _, one := range s.pending {
		s.saw(one.rule, one.hit, one.line, one.stamp)
	}
	s.pending = nil
	s.judgeCourse()
}

// shown is a line as it is shown to people.
func shown(text string) string {
	text = Mask(strings.TrimSpace(text))
	if len(text) > shownText {
		text = strings.ToValidUTF8(text[:shownText], "") + " …"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
