package hosttest

import (
	"strings"
)

// A shell just large enough for the one-liners by which the product finds out what is wrong: words
// and quotes, `;`, `&&`, `||`, `!`, `if … then … elif … else … fi`. Redirections are dropped, and
// there are neither variables nor pipes.

// script is a command line that is being run.
type script struct {
	tokens []token
	host   *Host
	output Outcome
}

// token is a word or an operator.
type token struct {
	text string
	// quoted words are never keywords.
	quoted   bool
	operator bool
}

// runShell runs a command line. The lock is held.
func (h *Host) runShell(line string) Outcome {
	s := &script{tokens: tokenize(line), host: h}
	s.list(true)
	return s.output
}

// tokenize splits a line as a POSIX shell does.
func tokenize(line string) []token {
	var tokens []token
	var word strings.Builder
	begun, quoted := false, false
	end := func() {
		if begun {
			tokens = append(tokens, token{text: word.String(), quoted: quoted})
		}
		word.Reset()
		begun, quoted = false, false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '\'':
			begun, quoted = true, true
			length := max(0, strings.IndexByte(line[i+1:], '\''))
			word.WriteString(line[i+1 : i+1+length])
			i += length + 1
		case '"':
			begun, quoted = true, true
			for i++; i < len(line) && line[i] != '"'; i++ {
				if line[i] == '\\' && i+1 < len(line) {
					i++
				}
				word.WriteByte(line[i])
			}
		case '\\':
			if i+1 < len(line) {
				i++
				begun, quoted = true, true
				word.WriteByte(line[i])
			}
		case ' ', '\t':
			end()
		case ';', '\n':
			end()
			tokens = append(tokens, token{text: ";", operator: true})
		case '&', '|':
			end()
			text := string(c)
			if i+1 < len(line) && line[i+1] == c {
				text += text
				i++
			}
			tokens = append(tokens, token{text: text, operator: true})
		case '>':
			// A redirection: its descriptor, its target.
			if descriptor := word.String(); descriptor != "1" && descriptor != "2" {
				end()
			}
			word.Reset()
			begun = false
			for i+1 < len(line) && strings.IndexByte("> &", line[i+1]) >= 0 {
				i++
			}
			for i+1 < len(line) && strings.IndexByte(" ;|\n", line[i+1]) < 0 {
				i++
			}
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	end()
	return tokens
}

// at says whether the next token is an operator or keyword.
func (s *script) at(texts ...string) bool {
	if len(s.tokens) == 0 || s.tokens[0].quoted {
		return false
	}
	for _, text := range texts {
		if s.tokens[0].text == text {
			return true
		}
	}
	return false
}

// take passes over the next token if it is the given one.
func (s *script) take(text string) bool {
	if !s.at(text) {
		return false
	}
	s.tokens = s.tokens[1:]
	return true
}

// list runs commands up to a keyword that ends them; live is false where they are only skipped.
func (s *script) list(live bool) {
	for len(s.tokens) > 0 && !s.at("then", "elif", "else", "fi") {
		if s.take(";") {
			continue
		}
		s.pipeline(live)
		for s.at("&&", "||") {
			wanted := s.at("&&")
			s.tokens = s.tokens[1:]
			s.pipeline(live && (s.output.ExitCode == 0) == wanted)
		}
		if s.at("|", "&") {
			s.output.Stderr += "sh: pipes are not simulated\n"
			s.output.ExitCode = 2
			s.tokens = nil
		}
	}
}

func (s *script) pipeline(live bool) {
	switch {
	case s.take("!"):
		s.pipeline(live)
		if live && s.output.ExitCode == 0 {
			s.output.ExitCode = 1
		} else if live {
			s.output.ExitCode = 0
		}
	case s.take("if"):
		s.conditional(live)
	default:
		s.simple(live)
	}
}

// conditional runs what follows an `if` or `elif`.
func (s *script) conditional(live bool) {
	s.list(live)
	met := live && s.output.ExitCode == 0
	if live {
		s.output.ExitCode = 0
	}
	s.take("then")
	s.list(met)
	switch {
	case s.take("elif"):
		s.conditional(live && !met)
	case s.take("else"):
		s.list(live && !met)
		s.take("fi")
	default:
		s.take("fi")
	}
}

// simple runs one command.
func (s *script) simple(live bool) {
	var words []string
	for len(s.tokens) > 0 && !s.tokens[0].operator {
		words = append(words, s.tokens[0].text)
		s.tokens = s.tokens[1:]
	}
	if !live || len(words) == 0 {
		return
	}
	outcome := s.host.command(words)
	s.output.Stdout += outcome.Stdout
	s.output.Stderr += outcome.Stderr
	s.output.ExitCode = outcome.ExitCode
}
