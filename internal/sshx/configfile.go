package sshx

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxIncludes is how deep Include may nest, as in OpenSSH.
const maxIncludes = 16

// directive is a line of an ssh_config file.
type directive struct {
	keyword   string // lower case
	arguments []string
	place     string // "file:line"
	included  [][]directive
}

// configFiles are the files to read for a Config, the user's first. None means that there is nothing to
// follow; a file that the Config names must exist.
func configFiles(configFile string) ([]string, error) {
	switch {
	case strings.EqualFold(configFile, "none"):
		return nil, nil
	case configFile != "":
		path, err := expand(configFile)
		if err != nil {
			return nil, err
		}
		if _, err := readFile(path, maxFile); err != nil {
			return nil, fmt.Errorf("the SSH configuration file: %w", err)
		}
		return []string{path}, nil
	}
	files := []string{systemConfig}
	if home, err := os.UserHomeDir(); err == nil {
		files = append([]string{filepath.Join(home, ".ssh", "config")}, files...)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

const systemConfig = "/etc/ssh/ssh_config"

// readConfig reads a file with all that it includes. What cannot be read is a warning: ssh_config is
// an aid, and what is missing of it shows when the connection is made.
func readConfig(file string, depth int) (directives []directive, warnings []string) {
	content, err := readFile(file, maxFile)
	if err != nil {
		return nil, []string{notFollowed("%v", err)}
	}
	return parseConfig(content, file, depth)
}

// notFollowed is a warning about a part of the configuration.
func notFollowed(format string, values ...any) string {
	return fmt.Sprintf("The SSH configuration is not followed in full: "+format, values...)
}

func parseConfig(content []byte, file string, depth int) (directives []directive, warnings []string) {
	scanner := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; scanner.Scan(); number++ {
		place := fmt.Sprintf("%s:%d", file, number)
		keyword, arguments, err := splitLine(scanner.Text())
		if err != nil {
			warnings = append(warnings, notFollowed("%s: %v", place, err))
			continue
		}
		if keyword == "" {
			continue
		}
		d := directive{keyword: keyword, arguments: arguments, place: place}
		if keyword == "include" {
			var more []string
			d.included, more = include(arguments, file, depth)
			warnings = append(warnings, more...)
		}
		directives = append(directives, d)
	}
	if err := scanner.Err(); err != nil {
		warnings = append(warnings, notFollowed("%s: %v", file, err))
	}
	return directives, warnings
}

// include reads what the patterns of one Include name; a relative one starts in the folder of the
// configuration that it stands in: ~/.ssh or /etc/ssh.
func include(patterns []string, file string, depth int) (included [][]directive, warnings []string) {
	if depth >= maxIncludes {
		return nil, []string{notFollowed("Include nests too deep in %s", file)}
	}
	for _, pattern := range patterns {
		path, err := expand(pattern)
		if err == nil && !filepath.IsAbs(path) {
			base := "~/.ssh/"
			if strings.HasPrefix(file, filepath.Dir(systemConfig)+"/") {
				base = filepath.Dir(systemConfig) + "/"
			}
			path, err = expand(base + path)
		}
		var found []string
		if err == nil {
			found, err = filepath.Glob(path)
		}
		if err != nil {
			warnings = append(warnings, notFollowed("Include %s in %s: %v", pattern, file, err))
		}
		for _, each := range found {
			directives, more := readConfig(each, depth+1)
			included, warnings = append(included, directives), append(warnings, more...)
		}
	}
	return included, warnings
}

var errQuote = errors.New("a quote is not closed")

// splitLine takes a line apart: "keyword argument …" or "keyword=argument", arguments with quotes if
// they hold spaces, and a comment at the end.
func splitLine(line string) (keyword string, arguments []string, err error) {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, " \t=")
	if line == "" || line[0] == '#' {
		return "", nil, nil
	}
	if end < 0 {
		return strings.ToLower(line), nil, nil
	}
	keyword, line = strings.ToLower(line[:end]), strings.TrimLeft(line[end:], " \t")
	line = strings.TrimLeft(strings.TrimPrefix(line, "="), " \t")
	if keyword == "proxycommand" || keyword == "localcommand" || keyword == "remotecommand" {
		return keyword, []string{line}, nil // a command line keeps its quotes
	}
	arguments, err = splitArguments(line)
	return keyword, arguments, err
}

func splitArguments(line string) ([]string, error) {
	var arguments []string
	for line = strings.TrimLeft(line, " \t"); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " \t") {
		var word strings.Builder
		var quote byte
		i := 0
		for ; i < len(line) && (quote != 0 || line[i] != ' ' && line[i] != '\t'); i++ {
			switch c := line[i]; {
			case c == '\\' && i+1 < len(line) && strings.IndexByte(`"'\`, line[i+1]) >= 0,
				c == '\\' && quote == 0 && i+1 < len(line) && line[i+1] == ' ':
				i++
				word.WriteByte(line[i])
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote && quote != 0:
				quote = 0
			default:
				word.WriteByte(c)
			}
		}
		if quote != 0 {
			return nil, errQuote
		}
		arguments, line = append(arguments, word.String()), line[i:]
	}
	return arguments, nil
}
