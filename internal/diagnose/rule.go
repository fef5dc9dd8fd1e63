package diagnose

// Kind is how much a symptom explains. The order of the constants is the order of a verdict.
type Kind int

// The kinds.
const (
	// Root is an error that is a cause in itself.
	Root Kind = iota
	// Contributor makes other failures: before them when one that it explains was seen, else after
	// every root.
	Contributor
	// Mechanism says how something ended and not why: it counts when there is no root.
	Mechanism
	// Consequence only says that something ended: it counts when there is nothing else.
	Consequence
	// Condition is wrong although everything runs: slow, on the wrong network, a secret in the log.
	Condition
	// Note is worth knowing and never a cause.
	Note
	// Harmless is what people stumble over, and may be ignored.
	Harmless
)

// Rule is a row of the catalogue: how a symptom is recognised, what it means, what to do about it.
// The words are those of the guide too; Refine words an answer with what the evidence tells.
type Rule struct {
	// ID names the rule for programs, and stays.
	ID string
	// Row is the number of the failure, 0 if it has none. Several rules may tell of one failure.
	Row  int
	Kind Kind
	// Any are literal texts of which a line must hold one; Pattern, if set, must match as well. Detail may
	// match: what it captures words the answer.
	Any             []string
	Pattern, Detail string
	// Unless are literal texts that a line must not hold.
	Unless []string
	// Follow is how many further lines of the same process belong to the message.
	Follow int
	// Until are literal texts that say, further down in the same log, that it was overcome.
	Until []string
	// Explains are the IDs of rules whose symptom this one makes. A mechanism with any counts only with one of them.
	Explains []string
	// Message is the symptom as people know it.
	Message string
	// Cause is one or two sentences, Fix the next step, Here the next step for a deployment of this provider.
	Cause, Fix, Here string
	// Alone says of a contributor that it counts even if nothing that it explains was seen.
	Alone bool
	// Fatal says that waiting will not help, even if the process still runs: a start is ended by it. What ends
	// by itself, or may be a warning of a start that succeeds, is not.
	Fatal bool
	// Refine may decline, and may change row and words.
	Refine func(hit Hit, evidence Evidence) Answer
}

// Hit is a line that a rule recognised.
type Hit struct {
	// Match are the submatches of Pattern, or of Detail: empty texts where that did not match.
	Match []string
	// Text is the line, with its followers, without colours and prefixes of timestamps.
	Text string
	// Host is where it happened, if that is known.
	Host string
	// Waited is for how long the log had been running, in seconds; 0 if it has no times.
	Waited int64
	// Spread says that the log is of ranks on more than one node, FastLoader that fastsafetensors is in it, and
	// Restarted that a server was told to end less than three minutes before.
	Spread, FastLoader, Restarted bool
	// Kernel is the release that the log names.
	Kernel string
}

// Answer is what a rule says of a hit.
type Answer struct {
	Row              int
	Cause, Fix, Here string
	// Declined says that the hit is nothing after all.
	Declined bool
}

// answer is the rule's own words, refined.
func (r Rule) answer(hit Hit, evidence Evidence) Answer {
	answer := Answer{Row: r.Row, Cause: r.Cause, Fix: r.Fix, Here: r.Here}
	if r.Refine == nil {
		return answer
	}
	refined := r.Refine(hit, evidence)
	if refined.Declined {
		return refined
	}
	if refined.Row != 0 {
		answer.Row = refined.Row
	}
	if refined.Cause != "" {
		answer.Cause = refined.Cause
	}
	if refined.Fix != "" {
		answer.Fix, answer.Here = refined.Fix, refined.Here
	}
	return answer
}

// declined is the answer of a rule that does not apply after all.
func declined() Answer { return Answer{Declined: true} }

// Section is a part of the catalogue.
type Section struct {
	Title string
	Rules []Rule
}

// Catalogue is every rule there is, in the sections of the guide.
func Catalogue() []Section {
	return []Section{
		{"Identity and the control network", identityRules()},
		{"Ray", rayRules()},
		{"RDMA, NCCL and the link", linkRules()},
		{"GPU, driver and container toolkit", gpuRules()},
		{"Memory", memoryRules()},
		{"Weights, image and disk", modelRules()},
		{"Serving", servingRules()},
		{"Course of a start", courseRules()},
		{"SSH and the host", hostRules()},
		{"Harmless", harmlessRules()},
	}
}
