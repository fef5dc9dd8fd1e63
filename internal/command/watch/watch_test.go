package watch

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/progress"
)

func TestLines(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	act := progress.Act{Thing: "vllm_deployment tiny", Started: start, Updated: start, Phase: "copying weights"}
	half := progress.Copy{Host: "b", From: "a", Files: 1, TotalFiles: 2, Bytes: 1.5e9, Total: 3e9, Rate: 5e8, Left: 3}
	whole := progress.Copy{Host: "b", Files: 2, TotalFiles: 2, Bytes: 3e9, Total: 3e9}
	var out bytes.Buffer
	shown := &lines{out: &out, last: map[string]line{}}
	show := func(after time.Duration, change func()) {
		change()
		shown.show([]progress.Act{act}, start.Add(after))
	}
	show(0, func() { act.Copies = []progress.Copy{half} })
	show(100*time.Millisecond, func() { act.Copies[0].Bytes += 1e6 }) // too soon to be said
	show(200*time.Millisecond, func() { act.Copies = []progress.Copy{whole} })
	show(2*time.Second, func() { act.Phase = "vLLM loads"; act.Updated = start.Add(2 * time.Second) })
	show(40*time.Second, func() {})
	show(41*time.Second, func() { act.Updated = start.Add(41 * time.Second); act.Ended = true })
	show(42*time.Second, func() { act.Error = "no space" })
	want := `vllm_deployment tiny b: 1 of 2 files, 1.5 GB of 3.0 GB, 500.0 MB/s, 3s left, from a
vllm_deployment tiny: copying weights
vllm_deployment tiny b: 2 of 2 files, 3.0 GB of 3.0 GB
vllm_deployment tiny: vLLM loads
vllm_deployment tiny: nothing heard for 15s: the provider's process has ended. Finished files stay; apply again goes on from there
vllm_deployment tiny: done in 41s
vllm_deployment tiny: failed after 41s: no space
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestRun(t *testing.T) {
	for name, failure := range map[string]error{"well": nil, "not well": errors.New("no space left")} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", t.TempDir())
			folder, err := progress.Folder()
			if err != nil {
				t.Fatal(err)
			}
			progress.Start(folder, "of before").End(errors.New("long ago")) // It is not shown.
			go func() {
				time.Sleep(2 * look)
				act := progress.Start(folder, "vllm_deployment tiny")
				time.Sleep(3 * look)
				act.Phase("vLLM loads")
				time.Sleep(5 * look)
				act.End(failure)
			}()
			var out, problems bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			code := Run(ctx, []string{"-plain"}, &out, &problems)
			if ctx.Err() != nil {
				t.Error("it did not end with the apply")
			}
			if (code == 0) != (failure == nil) || strings.Contains(out.String(), "long ago") || !strings.Contains(out.String(), "vllm_deployment tiny: ") {
				t.Errorf("code %d, %s%s", code, &out, &problems)
			}
		})
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, args := range [][]string{{"-wait", "1ms"}, {"-strange"}, {"more"}} {
		var out, problems bytes.Buffer
		if code := Run(t.Context(), args, &out, &problems); code != 1 || problems.Len() == 0 {
			t.Errorf("%v: code %d, %s", args, code, &problems)
		}
	}
}

// The bars end with the acts, whatever state these are in.
func TestBars(t *testing.T) {
	now := time.Now()
	var out bytes.Buffer
	shown := newBars(&out)
	act := progress.Act{Thing: "x", Updated: now, Copies: []progress.Copy{{Host: "b", Bytes: 1, Total: 2}, {Host: "c", Bytes: 2, Total: 2}, {Host: "d"}}}
	shown.show([]progress.Act{act}, now)
	act.Ended = true
	shown.show([]progress.Act{act}, now)
	done := make(chan struct{})
	go func() { defer close(done); shown.close() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the bars do not end")
	}
}
