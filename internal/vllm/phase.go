package vllm

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
)

// milestone is a line of vLLM's log that tells how far a start is.
type milestone struct {
	pattern string
	// phase is the word for it; "%s of %s" takes the pattern's two numbers.
	phase string
}

// milestones come in no order: the one whose line is last in the log counts.
func milestones() []milestone {
	return []milestone{
		{`vLLM API server version|version \d+\.\d+\.\d+\S*\s*$|Resolved architecture`, "reading the model's configuration"},
		{`Initializing a V\d LLM engine`, "starting the engine"},
		{`Connecting to existing Ray cluster`, "joining the Ray cluster"},
		{`Creating a new placement group|Waiting for creating a placement group`, "reserving GPUs"},
		{`distributed_init_method=`, "connecting the ranks"},
		{`Starting to load model`, "loading the model"},
		{`Loading \w+ checkpoint shards[^|\n]*\|\s*(\d+)/(\d+)`, "loading shards %s of %s"},
		{`Loading weights took|Model loading took`, "weights are loaded"},
		{`torch\.compile took|Compiling a graph|Dynamo bytecode transform`, "compiling"},
		{`Capturing CUDA graphs?[^\n]*?(\d+)/(\d+)`, "capturing CUDA graphs %s of %s"},
		{`KV cache size`, "reserving the KV cache"},
		{`init engine \(profile`, "engine is ready"},
		{`Starting vLLM (?:API )?server`, "opening the API"},
		{`Application startup complete`, "API is up"},
	}
}

// longestLine bounds a line of the log in a report, in bytes.
const longestLine = 200

// lastLine is the last line of the log that says something, without the secrets that it may show.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(diagnose.Plain(log)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return strings.ToValidUTF8(diagnose.Mask(line[:min(len(line), longestLine)]), "")
		}
	}
	return ""
}

// Phase says how far a start is, from the end of the server's log.
func Phase(log string) string {
	log = diagnose.Plain(log)
	last, phase := -1, "starting"
	for _, one := range milestones() {
		all := regexp.MustCompile("(?m)"+one.pattern).FindAllStringSubmatch(log, -1)
		at := regexp.MustCompile("(?m)"+one.pattern).FindAllStringIndex(log, -1)
		if len(at) == 0 || at[len(at)-1][0] < last {
			continue
		}
		last = at[len(at)-1][0]
		phase = one.phase
		if strings.Contains(phase, "%s") {
			match := all[len(all)-1]
			phase = fmt.Sprintf(phase, match[1], match[2])
		}
	}
	return phase
}
