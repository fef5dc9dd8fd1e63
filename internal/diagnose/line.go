package diagnose

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// Plain is a log without colours and carriage returns.
func Plain(log string) string {
	log = withoutColours(log)
	return strings.ReplaceAll(strings.ReplaceAll(log, "\r\n", "\n"), "\r", "\n")
}

// lazily is a pattern that is compiled when it is first needed: most processes of the provider read no log.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var colours = lazily("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")

func withoutColours(text string) string {
	if strings.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return colours().ReplaceAllString(text, "")
}

// unpacked are the lines in an entry of a JSON log (Docker's json-file, journald, a structured logger), and
// the host that it names. Any other text is its own line.
func unpacked(text string) (lines []string, host string) {
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return []string{text}, ""
	}
	var entry struct {
		Log       string `json:"log"`
		Message   any    `json:"MESSAGE"`
		Lower     string `json:"message"`
		Msg       string `json:"msg"`
		Event     string `json:"event"`
		Time      string `json:"time"`
		Hostname  string `json:"_HOSTNAME"`
		Exception string `json:"exception"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil {
		return []string{text}, ""
	}
	message, _ := entry.Message.(string)
	var parts []string
	for _, part := range []string{entry.Log, message, entry.Lower, entry.Msg, entry.Event, entry.Exception} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return []string{text}, ""
	}
	whole := strings.TrimRight(strings.Join(parts, "\n"), "\r\n")
	if entry.Time != "" {
		whole = entry.Time + " " + whole
	}
	return strings.Split(Plain(whole), "\n"), entry.Hostname
}

var (
	// rayPrefix is "(RayWorkerProc pid=71, ip=192.168.200.13) " or "(EngineCore_DP0 pid=123) ".
	rayPrefix = lazily(`\((\w+(?: rank=\d+)? pid=\d+|raylet|autoscaler|gcs_server)(?:, ip=([0-9a-fA-F.:]+))?[^()]*\)`)
	// rankPrefix is torch's "[rank1]:".
	rankPrefix = lazily(`\[rank(\d+)\]`)
	// journalPrefix is "Nov 30 10:11:12 spark-a kernel: ", also with an ISO time.
	journalPrefix = lazily(`^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) ([\w.-]+) [\w.@/-]+(?:\[\d+\])?: `)
	// composePrefix is "vllm-1  | " of docker compose, "[pod/vllm-0/vllm] " of kubectl.
	composePrefix = lazily(`^(?:([\w.-]+) +\| |\[pod/([^/\]]+)/[^\]]*\] )`)
)

// origin is which process on which host wrote a line, as far as its prefixes tell.
func origin(text string) (process, host string) {
	if match := journalPrefix().FindStringSubmatch(text); match != nil {
		host = match[1]
	}
	if match := composePrefix().FindStringSubmatch(text); match != nil {
		process = match[1] + match[2]
	}
	head := text[:min(len(text), 300)]
	if match := rayPrefix().FindStringSubmatch(head); match != nil {
		process += match[0]
		if match[2] != "" {
			host = match[2]
		}
	}
	if match := rankPrefix().FindString(head); match != "" {
		process += match
	}
	return process, host
}

// guesses start what a program says of reasons that it does not know.
var guesses = []string{
	"There are some potential root causes", "Some common causes include", "Possible reasons include", "This can happen when", "This may be caused by",
	"Possible causes:", "possible root causes",
}

// said is a line without a program's guesses; empty for what users wrote into their requests.
func said(text string) string {
	if strings.Contains(text, "Received request ") || strings.Contains(text, "Generated response ") {
		return ""
	}
	for _, guess := range guesses {
		if before, _, found := strings.Cut(text, guess); found {
			text = before
		}
	}
	return text
}

// stamp is the time of a line in seconds, counted so that later is more within one year; 0 if it has none.
// It knows "11-30 10:11:12", "2026-11-30T10:11:12", "E1130 10:11:12" and "Nov 30 10:11:12".
func stamp(text string) int64 {
	for i := 5; i+8 <= min(len(text), 200); i++ {
		if text[i+2] != ':' || text[i+5] != ':' || text[i-1] != ' ' && text[i-1] != 'T' {
			continue
		}
		hour, minute, second := digits(text[i:i+2]), digits(text[i+3:i+5]), digits(text[i+6:i+8])
		if hour < 0 || minute < 0 || second < 0 {
			continue
		}
		if month, day := dayBefore(text[:i-1]); month > 0 && day > 0 {
			return int64(((month*32+day)*24+hour)*3600 + minute*60 + second)
		}
	}
	return 0
}

// dayBefore reads the date that a text ends with.
func dayBefore(text string) (month, day int) {
	end := len(text)
	switch {
	case end >= 5 && text[end-3] == '-':
		return digits(text[end-5 : end-3]), digits(text[end-2:])
	case end >= 6 && text[end-3] == ' ':
		name := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", text[end-6:end-3])
		if name >= 0 && name%3 == 0 {
			return name/3 + 1, digits(strings.Replace(text[end-2:], " ", "0", 1))
		}
	case end >= 4:
		return digits(text[end-4 : end-2]), digits(text[end-2:])
	}
	return 0, 0
}

// digits is a number of two digits, -1 for anything else.
func digits(text string) int {
	if len(text) != 2 || text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9' {
		return -1
	}
	return int(text[0]-'0')*10 + int(text[1]-'0')
}
