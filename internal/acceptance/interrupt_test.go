package acceptance

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// interruptLimit is how long an apply may take to end after Ctrl-C.
const interruptLimit = 30 * time.Second

// Ctrl-C while Ray starts, while weights travel and while vLLM loads: each apply goes on where the one
// before ended.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	timing := hosttest.InstantTiming()
	timing.GCSUp, timing.Load = 2*time.Second, 3*time.Second
	w := newMemory(t, 2, hosttest.WithTiming(timing))
	// Enough to be caught on its way.
	padding := w.modelPath() + "/padding.bin"
	w.fleet.Host(a).WriteFile(padding, nil)
	w.fleet.Host(a).TruncateFile(padding, 300<<20)
	s := stage{w: w, ws: clitest.New(t, config{}.in(w), w.env()), within: 30 * time.Second}

	s.interrupt(t, "Ray starts", func() bool { return w.has(a, "ray-spark") })
	partial := w.modelPath() + "/.spark-partial/padding.bin"
	var begun *os.File // While it is open no other file gets its number.
	s.interrupt(t, "weights travel", func() bool {
		var err error
		begun, err = os.Open(w.fleet.Host(b).Path(partial))
		return err == nil
	})
	t.Cleanup(func() { _ = begun.Close() })
	s.interrupt(t, "vLLM loads", func() bool { return w.has(a, "vllm-tiny") })
	if !same(t, begun, w.fleet.Host(b).Path(padding)) {
		t.Error("the unfinished copy was thrown away and begun anew")
	}
	s.ws.Apply()
	s.ws.Empty()
	s.destroyed(t)
}

// same says whether an open file is the one of that path now.
func same(t *testing.T, open *os.File, path string) bool {
	t.Helper()
	before, err := open.Stat()
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(before, now)
}

// interrupt applies, waits until something is under way, and presses Ctrl-C.
func (s stage) interrupt(t *testing.T, while string, underWay func() bool) {
	t.Helper()
	var output bytes.Buffer
	command := s.ws.Command(t.Context(), "apply", "-auto-approve", "-no-color")
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	deadline := time.After(s.within)
	for !underWay() {
		select {
		case err := <-ended:
			t.Fatalf("%s: apply ended before that: %v\n%s", while, err, output.String())
		case <-deadline:
			t.Fatalf("%s: that was not seen within %s", while, s.within)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		text := clitest.Unwrap(output.String())
		if err == nil || !strings.Contains(text, "Interrupted. Apply again: it goes on from what is there.") {
			t.Errorf("%s: apply ended with %v\n%s", while, err, text)
		}
	case <-time.After(interruptLimit):
		t.Fatalf("%s: apply did not end within %s of Ctrl-C", while, interruptLimit)
	}
}
