package diagnose

import (
	"regexp"
	"strings"
)

const hidden = "(hidden)"

var (
	// tokens are secrets that can be told by their form.
	tokens = regexp.MustCompile(`\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|glpat-[A-Za-z0-9_-]{10,}|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)`)
	// named are secrets that can be told by their name: api_key='x', HF_TOKEN=x, --api-key x, 'api_key': ['x', 'y'].
	named  = regexp.MustCompile(`(?i)((?:[\w-]*(?:api[_-]?keys?|token|secret|passw(?:or)?d|passphrase))["']?(?:\s*[:=]\s*|\s+)\[?["']?)([^\s"',\])}&(]{4,})`)
	listed = regexp.MustCompile(`(?i)((?:api[_-]?keys?)["']?\s*[:=]\s*\[)([^\]]*)(\]|$)`)
	bearer = regexp.MustCompile(`(?i)(\bbearer\s+)([A-Za-z0-9._~+/=-]{6,})`)
	// userinfo is a password in a URL.
	userinfo = regexp.MustCompile(`(://[^/\s:@]*:)([^@\s/]+)(@)`)
	// plainWords follow such names in prose and are no secrets.
	plainWords = regexp.MustCompile(`(?i)^(?:none|null|true|false|is|are|was|not|for|and|or|of|to|in|with|that|this|from|ids?|count|limit|size|length|budget|must|may|can|will|authentication|required|enabled|missing|invalid|tokens?|generation|throughput|parser|\*+|\d+(?:\.\d+)?)$`)
)

// Mask hides secrets in a line of a log.
func Mask(text string) string {
	text = tokens.ReplaceAllString(text, hidden)
	text = listed.ReplaceAllString(text, "${1}"+hidden+"${3}")
	text = named.ReplaceAllStringFunc(text, func(match string) string {
		parts := named.FindStringSubmatch(match)
		if plainWords.MatchString(parts[2]) || strings.HasPrefix(parts[2], "hidden") {
			return match
		}
		return parts[1] + hidden
	})
	text = bearer.ReplaceAllString(text, "${1}"+hidden)
	return userinfo.ReplaceAllString(text, "${1}"+hidden+"${3}")
}
