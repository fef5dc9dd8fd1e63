// Package watch is the command that shows in a second terminal how far an apply is.
package watch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/spark-stack/terraform-provider-spark/internal/progress"
)

const usage = `Usage: terraform-provider-spark watch [-plain] [-wait DURATION]

Shows how far the applies of this user on this machine are: the phase, and for each node bytes, rate and time
left of its copies. It ends when they end.

  -plain          a line for each change, and no bars; so it is also without a terminal
  -wait DURATION  how long to wait for an apply that has not begun (default 10m)

Exit codes: 0 all that was seen has ended well; 1 something failed, or there was nothing to see.
`

const (
	// look is how often the files are read.
	look = 250 * time.Millisecond
	// linger is how long after the last act another one of the same apply may begin.
	linger = 3 * time.Second
)

// view shows acts.
type view interface {
	show(acts []progress.Act, now time.Time)
	close()
}

// Run is `terraform-provider-spark watch`. It returns the exit code.
func Run(ctx context.Context, args []string, out, problems io.Writer) int {
	options := flag.NewFlagSet("watch", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	plain := options.Bool("plain", false, "")
	wait := options.Duration("wait", 10*time.Minute, "")
	err := options.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return tell(out, usage, 0)
	}
	if err == nil && options.NArg() > 0 {
		err = fmt.Errorf("%q is not expected", options.Arg(0))
	}
	if err != nil {
		return tell(problems, err.Error()+"\n\n"+usage, 1)
	}
	folder, err := progress.Folder()
	if err != nil {
		return tell(problems, err.Error()+"\n", 1)
	}
	var shown view = &lines{out: out, last: map[string]line{}}
	if file, isFile := out.(*os.File); isFile && !*plain && isatty.IsTerminal(file.Fd()) {
		shown = newBars(out)
	}
	failure, err := follow(ctx, folder, *wait, shown)
	shown.close()
	switch {
	case err != nil:
		return tell(problems, err.Error()+"\n", 1)
	case failure:
		return 1
	}
	return 0
}

// follow shows acts until all that were seen have ended; failed says that one did not end well.
func follow(ctx context.Context, folder string, wait time.Duration, shown view) (failed bool, err error) {
	begun := time.Now()
	seen := map[string]bool{}
	lastRunning := begun
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		now := time.Now()
		acts, err := progress.Read(folder)
		if err != nil {
			return false, err
		}
		var ours []progress.Act
		failed = false
		for _, act := range acts {
			key := fmt.Sprint(act.Process, act.Thing, act.Started)
			if act.Running(now) {
				seen[key], lastRunning = true, now
			}
			if seen[key] {
				ours = append(ours, act)
				failed = failed || act.Error != "" || (!act.Ended && !act.Running(now))
			}
		}
		shown.show(ours, now)
		switch {
		case len(seen) == 0 && now.Sub(begun) > wait:
			return false, fmt.Errorf("no apply began within %s; it is looked for in %s", wait, folder)
		case len(seen) > 0 && now.Sub(lastRunning) > linger:
			return failed, nil
		}
		select {
		case <-ctx.Done():
			return failed, nil
		case <-ticker.C:
		}
	}
}

func tell(to io.Writer, text string, code int) int {
	if _, err := io.WriteString(to, text); err != nil {
		return 1
	}
	return code
}
