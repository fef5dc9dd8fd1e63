// Command testsummary reads `go test -json` on its standard input. It prints the closing line of
// every package and the whole output of tests that failed, and ends with the number of tests:
// "N passed, N failed, N skipped".
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

func main() {
	failed, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// summarize copies what a reader needs and returns how many tests failed. A package that failed
// without a failed test, because it does not build or panics, counts as one.
func summarize(in io.Reader, out io.Writer) (int, error) {
	var (
		passed, failed, skipped int
		output                  = map[string]*strings.Builder{} // by package and test
		broken                  = map[string]bool{}             // packages with a failed test
	)
	keep := func(key, text string) {
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		output[key].WriteString(text)
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(out, line) // not from the test runner: show it as it is
				continue
			}
			key := e.Package + " " + e.Test
			switch e.Action {
			case "build-output":
				fmt.Fprint(out, e.Output)
			case "output":
				if e.Test == "" && closing(e.Output) {
					fmt.Fprint(out, e.Output)
				} else {
					keep(key, e.Output)
				}
			case "pass", "skip", "fail":
				switch {
				case e.Action == "fail" && e.Test == "":
					if !broken[e.Package] {
						failed++
						if text := output[key]; text != nil {
							fmt.Fprint(out, text)
						}
					}
				case e.Test == "":
				case e.Action == "pass":
					passed++
				case e.Action == "skip":
					skipped++
				default:
					failed++
					broken[e.Package] = true
					if text := output[key]; text != nil {
						fmt.Fprint(out, text)
					}
				}
				delete(output, key)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return failed, err
		}
	}
	_, err := fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed, err
}

// closing tells the lines that end a package.
func closing(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t")
}
