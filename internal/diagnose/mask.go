package diagnose

import (
	"strings"
)

const hidden = "(hidden)"

var (
	// tokens are secrets that can be told by their form.
	tokens = lazily(`\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|glpat-[A-Za-z0-9_-]{10,}|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)`)
	// named are secrets that can be told by their name: api_key='x', HF_TOKEN=x, --api-key x, 'api_key': ['x', 'y'].
	named  = lazily(`(?i)((?:[\w-]*(?:api[_-]?keys?|token|secret|passw(?:or)?d|passphrase))["']?(?:\s*[:=]\s*|\s+)\[?["']?)([^\s"',\])}&(]{4,})`)
	listed = lazily(`(?i)((?:api[_-]?keys?)["']?\s*[:=]\s*\[)([^\]]*)(\]|$)`)
	bearer = lazily(`(?i)(\bbearer\s+)([A-Za-z0-9._~+/=-]{6,})`)
	// userinfo is a password in a URL.
	userinfo = lazily(`(://[^/\s:@]*:)([^@\s/]+)(@)`)
	// plainWords follow such names in prose and are no secrets.
	plainWords = lazily(`(?i)^(?:none|null|true|false|is|are|was|not|for|and|or|of|to|in|with|that|this|from|ids?|count|limit|size|length|budget|must|may|can|will|authentication|required|enabled|missing|invalid|tokens?|generation|throughput|parser|\*+|\d+(?:\.\d+)?)$`)
)

// Mask hides secrets in a line of a log.
func Mask(text string) string {
	text = tokens().ReplaceAllString(text, hidden)
	text = listed().ReplaceAllString(text, "${1}"+hidden+"${3}")
	text = named().ReplaceAllStringFunc(text, func(match string) string {
		parts := named().FindStringSubmatch(match)
		if plainWords().MatchString(parts[2]) || strings.HasPrefix(parts[2], "hidden") {
			return match
		}
		return parts[1] + hidden
	})
	text = bearer().ReplaceAllString(text, "${1}"+hidden)
	return userinfo().ReplaceAllString(text, "${1}"+hidden+"${3}")
}
