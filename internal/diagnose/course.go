package diagnose

import (
	"fmt"
	"strings"
)

// course is what can only be told from many lines: how loading, downloading and capturing went on.
type course struct {
	// capturing is the last unfinished line of a capture of CUDA graphs, silent counts the minutes without
	// progress since then, and waits those since anything else happened.
	capturing      Line
	capturingSince int64
	silent, waits  int
	silentLine     Line
	// Rates of loading shards, per second.
	best, last  float64
	done, total int
	loading     Line
	download    map[string]*download
	free        []float64
}

// download is one progress bar.
type download struct {
	amount string
	since  int
}

var (
	shardBar    = lazily(`checkpoint shards:.*?(\d+)/(\d+) \[[\d:]+<[\d:?]+, +([\d.]+)(s/it|it/s)`)
	downloadBar = lazily(`([^\s:]+): +(\d+)%\|[^|]*\| *([\d.]+[kMGT]?)B?/([\d.]+[kMGT]?)B? \[(?:(\d+):)?(\d+):(\d+)<`)
	kernelLine  = lazily(`Linux version (\S+)`)
)

// courseMarks are the literal texts of the lines that marks and progress know.
func courseMarks() []string {
	return []string{
		"Application startup complete", "vLLM API server version", "INFO:     Shutting down", "Received SIGTERM", "KeyboardInterrupt: terminated",
		"Finished server process", "Received signal 15", "Received SIGINT", ", ip=", "Connecting to existing Ray cluster", "nNodes ", "nnodes",
		"fastsafetensors", "Linux version ", "%|", "checkpoint shards:", "Capturing CUDA graph", "Graph capturing finished", "init engine (profile",
		"No available shared memory broadcast block found",
	}
}

// marks notes where a log stands.
func (s *source) marks(text string) {
	switch {
	case strings.Contains(text, "Application startup complete"):
		s.becameHealthy()
	case strings.Contains(text, "vLLM API server version"):
		s.began, s.stopping = s.now, false
		s.course = course{free: s.course.free}
	case strings.Contains(text, "INFO:     Shutting down"), strings.Contains(text, "Received SIGTERM"), strings.Contains(text, "KeyboardInterrupt: terminated"),
		strings.Contains(text, "Finished server process"), strings.Contains(text, "Received signal 15"), strings.Contains(text, "Received SIGINT"):
		s.stopping, s.stopped = true, max(s.now, 1)
	}
	s.spread = s.spread || strings.Contains(text, ", ip=") || strings.Contains(text, "Connecting to existing Ray cluster") || strings.Contains(text, "odes") && multiNode().MatchString(text)
	s.fast = s.fast || strings.Contains(text, "fastsafetensors")
	if strings.Contains(text, "Linux version ") {
		if match := kernelLine().FindStringSubmatch(text); match != nil {
			s.kernel = match[1]
		}
	}
}

var multiNode = lazily(`nNodes [2-9]|nnodes['=: ]+[2-9]`)

// becameHealthy forgets what a start has overcome.
func (s *source) becameHealthy() {
	s.healthy, s.stopping = max(s.now, 1), false
	for index := range s.seen {
		if overcome(s.scan.rules[index].Kind) {
			delete(s.seen, index)
		}
	}
	s.course = course{}
}

// overcome says whether a symptom means nothing once the server is ready.
func overcome(kind Kind) bool {
	return kind == Root || kind == Contributor || kind == Mechanism || kind == Consequence
}

// progress follows bars and silences.
func (s *source) progress(number int, text string) {
	c := &s.course
	line := func() Line { return Line{File: s.name, Number: number, Host: s.host, Text: shown(text)} }
	switch {
	case strings.Contains(text, "No available shared memory broadcast block found"):
		c.silent++
		c.waits++
		c.silentLine = line()
	case strings.Contains(text, "Capturing CUDA graph"):
		if strings.Contains(text, "100%") {
			c.capturing = Line{}
			return
		}
		c.capturing, c.capturingSince, c.silent = line(), s.now, 0
	case strings.Contains(text, "Graph capturing finished"), strings.Contains(text, "init engine (profile"):
		c.capturing, c.waits = Line{}, 0
	case strings.Contains(text, "checkpoint shards:"):
		c.waits = 0
		s.loads(text, line)
	case strings.Contains(text, "%|"):
		s.downloads(text, line)
	}
}

// loads follows the bar of vLLM's loader.
func (s *source) loads(text string, line func() Line) {
	match := shardBar().FindStringSubmatch(text)
	if match == nil {
		return
	}
	c := &s.course
	rate := number(match[3])
	if match[4] == "s/it" && rate > 0 {
		rate = 1 / rate
	}
	c.done, c.total = int(number(match[1])), int(number(match[2]))
	c.best, c.last, c.loading = max(c.best, rate), rate, line()
}

// downloads follows a bar of the hub's client.
func (s *source) downloads(text string, line func() Line) {
	match := downloadBar().FindStringSubmatch(text)
	if match == nil || number(match[2]) < 90 || match[3] == match[4] {
		return
	}
	elapsed := (int(number(match[5]))*60+int(number(match[6])))*60 + int(number(match[7]))
	if s.course.download == nil {
		s.course.download = map[string]*download{}
	}
	bar := s.course.download[match[1]]
	if bar == nil || bar.amount != match[3] {
		if len(s.course.download) < 1000 {
			s.course.download[match[1]] = &download{amount: match[3], since: elapsed}
		}
		return
	}
	if elapsed-bar.since >= 120 {
		s.sawID("download-hang", Hit{Text: text}, line())
	}
}

// shrinks notes how much memory each attempt found.
func (s *source) shrinks(hit Hit, line Line) {
	if hit.Match[2] == "" {
		return
	}
	free := &s.course.free
	now := number(hit.Match[2])
	if count := len(*free); count > 0 && now >= (*free)[count-1] {
		*free = nil
	}
	if len(*free) < 100 {
		*free = append(*free, now)
	}
	if len(*free) >= 3 && (*free)[0]-now > 5 {
		s.sawID("leak", Hit{Text: fmt.Sprintf("%.1f %.1f %d", (*free)[0], now, len(*free))}, line)
	}
}

// judgeCourse says what the course of a whole log means.
func (s *source) judgeCourse() {
	c := &s.course
	switch {
	case c.capturing.Text != "" && (c.silent >= 5 || c.silent > 0 && s.now-c.capturingSince >= 600):
		s.sawID("graph-hang", Hit{Text: c.capturing.Text}, c.capturing)
	case c.waits >= 20:
		s.sawID("stuck", Hit{Text: c.silentLine.Text}, c.silentLine)
	}
	if c.done > 2 && c.done < c.total {
		switch {
		case c.last > 0 && c.best/c.last >= 8:
			s.sawID("slowing-load", Hit{Text: fmt.Sprintf("%.1f %.2f %d %d", c.best, c.last, c.done, c.total)}, c.loading)
		case c.best > 0 && c.best < 1.0/15:
			s.sawID("slow-load", Hit{Text: fmt.Sprintf("%.0f", 1/c.best)}, c.loading)
		}
	}
}

// sawID records what no single line shows.
func (s *source) sawID(id string, hit Hit, line Line) {
	for index := range s.scan.rules {
		if s.scan.rules[index].ID == id {
			hit.Host = line.Host
			s.saw(index, hit, line, s.now)
			return
		}
	}
}

// courseRules have no line of their own: they are told from many.
func courseRules() []Rule {
	return []Rule{
		{
			ID: "graph-hang", Row: 45, Kind: Root,
			Message: "Capturing CUDA graphs … 20%, then for ten minutes nothing but No available shared memory broadcast block found",
			Cause:   "The capture of CUDA graphs hangs: the ranks wait for each other in a collective over two nodes.",
			Fix:     "Start with --enforce-eager to get on (decoding is then slower); NCCL 2.30.4 or newer is reported to cure it. Look at the worker's log first: a rank that died there looks the same.",
		},
		{
			ID: "stuck", Kind: Mechanism,
			Message: "No available shared memory broadcast block found, 20 times and more",
			Cause:   "A rank has done nothing for many minutes: it hangs, or it is gone.",
			Fix:     "Look at the log and the GPU of every node; all ranks must be started again together.",
			Here:    applyRanks,
		},
		{
			ID: "slowing-load", Row: 58, Kind: Contributor, Alone: true,
			Explains: []string{"killed", "out-of-memory", "oom-killer", "driver-memory", "rank-died", "engine-failed", "engine-dead"},
			Message:  "Loading safetensors checkpoint shards: 73% … slows from 4.5 to 0.2 it/s",
			Cause:    "Loading became slower and slower: page cache, of the copy that was just made or of the files being read, takes the memory that the weights need.",
			Fix:      "Give page cache back before the start (`sync; echo 3 | sudo tee /proc/sys/vm/drop_caches`, or fadvise the files without root), on every node.",
			Here:     "Apply again: page cache of the weights is given back before the start.",
		},
		{
			ID: "slow-load", Row: 82, Kind: Contributor, Alone: true,
			Explains: []string{"slow-start"},
			Message:  "Loading safetensors checkpoint shards: … 41.2s/it",
			Cause:    "Loading is slow from the start: reading by mmap is up to five times slower on this platform, or the disk or the network that the files come from is.",
			Fix:      "Try another loader (--load-format, --safetensors-load-strategy), and have the model on a local disk of each node.",
		},
		{
			ID: "leak", Row: 62, Kind: Contributor, Alone: true, Explains: []string{"free-memory"},
			Message: "Free memory on device … less at each of several starts",
			Cause:   "Every start finds less free memory than the one before: crashed runs do not give all of it back.",
			Fix:     "Do not start again and again: reboot the nodes.",
			Refine: func(hit Hit, _ Evidence) Answer {
				var first, last float64
				var count int
				if _, err := fmt.Sscan(hit.Text, &first, &last, &count); err != nil {
					return Answer{}
				}
				return Answer{Cause: fmt.Sprintf("Every start finds less free memory than the one before (%.1f GiB, and %.1f GiB after %d): crashed runs do not give all of it back.", first, last, count)}
			},
		},
		{
			ID: "download-hang", Row: 75, Kind: Root,
			Message: "model-00012-of-00039.safetensors: 99%|…| 4.95G/5.00G, and no byte for two minutes",
			Cause:   "A download stands still near its end: the hub's Xet client hangs.",
			Fix:     "Stop it and resume with HF_HUB_DISABLE_XET=1: what is there is kept.",
		},
	}
}
