// Package diagnose is the command that says what saved logs mean, without a connection to any machine.
package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
)

// The exit codes. 2 is left out: Terraform gives it the sense of a difference.
const (
	nothingFound = 0
	cannotRead   = 1
	causesFound  = 3
)

const usage = `Usage: terraform-provider-spark diagnose [-json] [-evidence FILE.json] [NODE=]FILE...

Says what saved logs of Ray, vLLM, NCCL, Docker and the kernel mean: causes from the most to the least
likely, the lines that gave them away, what to do, and what may be ignored. It needs no machine and no network.

FILE may be compressed by gzip; - is the standard input. Give the logs of all ranks: the cause is often
in the one that died first. NODE= says where a log comes from.

  -evidence FILE.json  what else is known: nodes, their facts and environments, Ray's node table
  -json                for programs
  -catalogue           all that it knows, as Markdown; reads no log

Exit codes: 0 nothing found, or only harmless lines; 3 causes found; 1 something could not be read.
`

// Run is `terraform-provider-spark diagnose`. It returns the exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, problems io.Writer) int {
	wish, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return write(out, usage, nothingFound)
	}
	if err != nil {
		return write(problems, err.Error()+"\n\n"+usage, cannotRead)
	}
	if wish.catalogue {
		return write(out, catalogue(), nothingFound)
	}
	evidence, err := readEvidence(wish.evidence)
	if err != nil {
		return write(problems, err.Error()+"\n", cannotRead)
	}
	scan := diagnose.NewScan(evidence)
	var unread []string
	for _, name := range wish.files {
		if err := read(ctx, scan, name, in); err != nil {
			unread = append(unread, err.Error())
		}
	}
	report := scan.Report()
	answer := text(report, len(wish.files))
	if wish.json {
		answer = encoded(report, unread)
	}
	code := nothingFound
	if len(report.Causes) > 0 {
		code = causesFound
	}
	for _, why := range unread {
		code = write(problems, why+"\n", cannotRead)
	}
	if len(unread) == len(wish.files) && len(unread) > 0 && !wish.json && len(report.Causes) == 0 {
		return code // Nothing was read, so nothing can be said.
	}
	return write(out, answer, code)
}

// write returns the code, or that of a failure if the text cannot be written.
func write(to io.Writer, text string, code int) int {
	if _, err := io.WriteString(to, text); err != nil {
		return cannotRead
	}
	return code
}

// wish is a command line.
type wish struct {
	files           []string
	evidence        string
	json, catalogue bool
}

// parse takes options before, between and after the files.
func parse(args []string) (wish, error) {
	var asked wish
	options := flag.NewFlagSet("diagnose", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	options.StringVar(&asked.evidence, "evidence", "", "")
	options.BoolVar(&asked.json, "json", false, "")
	options.BoolVar(&asked.catalogue, "catalogue", false, "")
	for {
		if err := options.Parse(args); err != nil {
			return wish{}, err
		}
		if options.NArg() == 0 {
			break
		}
		asked.files = append(asked.files, options.Arg(0))
		args = options.Args()[1:]
	}
	if len(asked.files) == 0 && asked.evidence == "" && !asked.catalogue {
		return wish{}, errors.New("no log was named")
	}
	return asked, nil
}

// read scans one log.
func read(ctx context.Context, scan *diagnose.Scan, name string, in io.Reader) error {
	host, path := "", name
	if before, after, found := strings.Cut(name, "="); found && before != "" && !strings.ContainsAny(before, "/\\") {
		if _, err := os.Stat(name); err != nil {
			host, path = before, after
		}
	}
	if path == "-" {
		return scan.Read(ctx, "stdin", host, in)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(scan.Read(ctx, path, host, file), file.Close())
}

// readEvidence reads a file of the form that the guide describes.
func readEvidence(path string) (diagnose.Evidence, error) {
	var evidence diagnose.Evidence
	if path == "" {
		return evidence, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return evidence, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return evidence, fmt.Errorf("%s: %w", path, err)
	}
	known := []string{"nodes", "ray_nodes", "placement_groups", "image", "port", "waited_seconds", "host"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return evidence, fmt.Errorf("%s: %q is no field of the evidence; known are %s", path, name, strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(content, &evidence); err != nil {
		return evidence, fmt.Errorf("%s: %w", path, err)
	}
	return evidence, nil
}
