package ray

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcstest"
)

// serve replaces the world's GCS.
func (w *world) serve(t *testing.T, config gcstest.Config) {
	t.Helper()
	w.server.Close()
	config.Table = w.table
	w.server = gcstest.Start(config)
	t.Cleanup(w.server.Close)
}

// TestSilentGCS proves that silence is asked again, and is never taken for a dead cluster.
func TestSilentGCS(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		w.serve(t, gcstest.Config{Mute: true})
		start := time.Now()
		var typed *Error
		_, err := Look(t.Context(), spec, w.machines)
		if !errors.As(err, &typed) || typed.Host != "10.1.230.180" || !silent(err) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < 3*gcs.CallTimeout || took > 4*gcs.CallTimeout {
			t.Errorf("took %s", took)
		}
	})
}

// TestTimeIsOver proves that an act whose own time is over says where it stood.
func TestTimeIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.used["192.168.200.13"] = 1
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := Apply(ctx, spec, w.machines, w.decide(t, spec), nil)
		var typed *Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &typed) {
			t.Fatalf("got %v", err)
		}
		if !strings.Contains(typed.Error(), "1 of 1 GPUs are taken") || !strings.Contains(typed.Evidence, "ray says why") || !strings.Contains(typed.Advice, "timeouts") {
			t.Errorf("got %v (%+v)", err, typed)
		}
	})
}

// TestPortMovesToATakenOne has a cluster that is to move to the port of somebody else.
func TestPortMovesToATakenOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := pairSpec()
		w.mustUp(t, spec)
		if err := CheckFree(t.Context(), spec, w.machines); err != nil {
			t.Errorf("its own port: %v", err)
		}
		spec.Port = 6380
		if err := CheckFree(t.Context(), spec, w.machines); err != nil {
			t.Errorf("a free port: %v", err)
		}
		w.hosts[0].facts.Listening = []int{6380}
		for name, err := range map[string]error{
			"plan":  CheckFree(t.Context(), spec, w.machines),
			"apply": Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.180": "command differs"}, nil),
		} {
			if err == nil || !strings.Contains(err.Error(), "listens on port 6380 already") {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantJournal(t, w)
	})
}

func TestMayHold(t *testing.T) {
	tests := map[string]struct {
		status  string
		command []string
		want    bool
	}{
		"as made":            {running, []string{"ray", "start", "--head", "--port=6379"}, true},
		"in two words":       {running, []string{"ray", "start", "--head", "--port", "6379"}, true},
		"without the flag":   {running, []string{"ray", "start", "--head"}, true},
		"paused":             {"paused", []string{"ray", "start", "--head", "--port=6379"}, true},
		"ended":              {"exited", []string{"ray", "start", "--head", "--port=6379"}, false},
		"another":            {running, []string{"ray", "start", "--head", "--port=6380"}, false},
		"another, two words": {running, []string{"ray", "start", "--head", "--port", "6380"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			container := engine.Container{Status: test.status, Spec: engine.ContainerSpec{Command: test.command}}
			if got := mayHold(6379, container); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
