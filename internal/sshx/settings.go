package sshx

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// settings are what ssh_config says about one host; zero values say nothing.
type settings struct {
	hostName         string
	user             string
	port             int
	addressFamily    string
	identityFiles    []string
	certificateFiles []string
	identitiesOnly   bool
	identityAgent    string
	proxyJump        string
	proxyCommand     string
	hostKeyAlias     string
	hostKeyChecking  string
	userKnownHosts   []string
	globalKnownHosts []string
	revokedHostKeys  []string
}

// relevant are the keywords that change what we do. A configuration without any of them, such as
// Debian's own, need not be evaluated.
var relevant = []string{
	"hostname", "user", "port", "addressfamily", "identityfile", "certificatefile", "identitiesonly", "identityagent",
	"proxyjump", "proxycommand", "hostkeyalias", "stricthostkeychecking", "userknownhostsfile", "globalknownhostsfile",
	"revokedhostkeys",
}

// relevance says whether the directives hold anything of interest.
func relevance(directives []directive) bool {
	return slices.ContainsFunc(directives, func(d directive) bool {
		return slices.Contains(relevant, d.keyword) || slices.ContainsFunc(d.included, relevance)
	})
}

// set takes one value, as ssh does: the first one counts, but files to try add up.
func (s *settings) set(keyword string, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	value := arguments[0]
	first := func(field *string) {
		if *field == "" {
			*field = value
		}
	}
	switch keyword {
	case "hostname":
		first(&s.hostName)
	case "user":
		first(&s.user)
	case "port":
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q is no port", value)
		}
		if s.port == 0 {
			s.port = int(port)
		}
	case "addressfamily":
		first(&s.addressFamily)
	case "identityfile":
		s.identityFiles = append(s.identityFiles, value)
	case "certificatefile":
		s.certificateFiles = append(s.certificateFiles, value)
	case "identityagent":
		first(&s.identityAgent)
	case "proxyjump", "proxycommand":
		// The first of the two counts, whichever it is.
		if s.proxyJump == "" && s.proxyCommand == "" {
			if keyword == "proxyjump" {
				s.proxyJump = strings.Join(arguments, " ")
			} else {
				s.proxyCommand = value
			}
		}
	case "hostkeyalias":
		first(&s.hostKeyAlias)
	case "stricthostkeychecking":
		first(&s.hostKeyChecking)
	case "userknownhostsfile":
		if s.userKnownHosts == nil {
			s.userKnownHosts = arguments
		}
	case "globalknownhostsfile":
		if s.globalKnownHosts == nil {
			s.globalKnownHosts = arguments
		}
	case "revokedhostkeys":
		if s.revokedHostKeys == nil {
			s.revokedHostKeys = arguments
		}
	}
	return nil
}

// query is the host that a configuration is asked about.
type query struct {
	host string // as the user wrote it
	user string // empty: not given
	port int    // 0: not given
}

// evaluation applies directives to a query.
type evaluation struct {
	query    query
	settings settings
	// only is IdentitiesOnly once it was set: no is a value too.
	only     bool
	warnings []string
}

// apply goes through the directives; inner blocks count only where the outer one matched.
func (e *evaluation) apply(directives []directive, outer bool) {
	active := outer
	for _, d := range directives {
		switch d.keyword {
		case "host":
			active = outer && matchesPatterns(e.query.host, d.arguments)
		case "match":
			matched, err := e.match(d.arguments)
			if err != nil {
				e.warnings = append(e.warnings, notFollowed("%s: %v, so its block is passed over", d.place, err))
			}
			active = outer && matched
		case "include":
			for _, included := range d.included {
				e.apply(included, active)
			}
		case "identitiesonly":
			if active && !e.only && len(d.arguments) > 0 {
				e.only, e.settings.identitiesOnly = true, isYes(d.arguments[0])
			}
		default:
			if !active {
				continue
			}
			if err := e.settings.set(d.keyword, d.arguments); err != nil {
				e.warnings = append(e.warnings, notFollowed("%s: %v", d.place, err))
			}
		}
	}
}

func isYes(value string) bool {
	return strings.EqualFold(value, "yes") || strings.EqualFold(value, "true")
}

// match decides the criteria of a Match line that can be decided without a command or the network.
func (e *evaluation) match(criteria []string) (bool, error) {
	matched := true
	for len(criteria) > 0 {
		name, negated := strings.CutPrefix(criteria[0], "!")
		criteria = criteria[1:]
		name, value, joined := strings.Cut(name, "=")
		if name = strings.ToLower(name); name == "all" {
			continue
		}
		if !joined {
			if len(criteria) == 0 || name == "canonical" || name == "final" {
				return false, fmt.Errorf("Match %s is not understood", name) //nolint:staticcheck // Match is a keyword
			}
			value, criteria = criteria[0], criteria[1:]
		}
		var subject string
		switch name {
		case "host":
			if subject = e.query.host; e.settings.hostName != "" {
				subject = strings.ReplaceAll(e.settings.hostName, "%h", e.query.host)
			}
		case "originalhost":
			subject = e.query.host
		case "user":
			if subject = e.query.user; subject == "" {
				if subject = e.settings.user; subject == "" {
					subject = localUser()
				}
			}
		case "localuser":
			subject = localUser()
		default:
			return false, fmt.Errorf("Match %s is not understood", name) //nolint:staticcheck // Match is a keyword
		}
		if matchesPatterns(subject, strings.Split(value, ",")) == negated {
			matched = false
		}
	}
	return matched, nil
}

// matchesPatterns is the rule of ssh for Host, Match and known_hosts: one pattern must match and none
// that is negated.
func matchesPatterns(subject string, patterns []string) bool {
	matched := false
	for _, pattern := range patterns {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if pattern == "" || !matchesPattern(pattern, subject) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matchesPattern knows "*" and "?"; it goes back to the last star only, so that no pattern takes long.
func matchesPattern(pattern, subject string) bool {
	p, s, star, mark := 0, 0, -1, 0
	for s < len(subject) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, s
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == subject[s]):
			p++
			s++
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// localUser is the name of whoever runs this; Windows says "DOMAIN\user".
func localUser() string {
	current, err := user.Current()
	if err != nil {
		return os.Getenv("USER")
	}
	return current.Username[strings.LastIndex(current.Username, `\`)+1:]
}
