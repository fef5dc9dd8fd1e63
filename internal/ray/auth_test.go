package ray

import (
	"errors"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcstest"
)

// lockedSpec is the pair with a token.
func lockedSpec() Spec {
	spec := pairSpec()
	spec.Authentication, spec.Authenticated = AuthToken, true
	return spec
}

const secretName = "ray/pair/auth_token"

func TestToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := lockedSpec()
		w.mustUp(t, spec)
		first := w.hosts[0].secrets[secretName]
		if len(first) != 2*secretBytes || w.hosts[1].secrets[secretName] != first {
			t.Fatalf("tokens: %q and %q", first, w.hosts[1].secrets[secretName])
		}
		for _, host := range w.hosts {
			for name, value := range host.containers[0].Spec.Env {
				if strings.Contains(value, first) {
					t.Errorf("%s: the token is in %s", host.host, name)
				}
			}
		}
		if seen := w.look(t, spec); seen.Table.Open || len(Lines(Want(spec), seen.Nodes)) > 0 {
			t.Errorf("open %v, %q", seen.Table.Open, Lines(Want(spec), seen.Nodes))
		}
		if err := CheckMembers(t.Context(), spec, w.machines, true); err != nil {
			t.Error(err)
		}
		if err := Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.181": "image"}, nil); err != nil || w.hosts[1].secrets[secretName] != first {
			t.Errorf("a new worker: %v, token %q", err, w.hosts[1].secrets[secretName])
		}
		if err := Apply(t.Context(), spec, w.machines, map[string]string{"10.1.230.180": "image"}, nil); err != nil {
			t.Fatal(err)
		}
		if second := w.hosts[0].secrets[secretName]; second == first || w.hosts[1].secrets[secretName] != second {
			t.Errorf("a new head: %q, %q after %q", second, w.hosts[1].secrets[secretName], first)
		}
		if err := Destroy(t.Context(), spec, w.machines, nil); err != nil || len(w.hosts[0].secrets)+len(w.hosts[1].secrets) > 0 {
			t.Errorf("destroy: %v, %v, %v", err, w.hosts[0].secrets, w.hosts[1].secrets)
		}
	})
}

// TestOldRay has an image whose Ray knows no token: it works, and is known to be open.
func TestOldRay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := lockedSpec()
		spec.Authenticated = false
		w.hosts[0].ray = "2.48.0"
		w.mustUp(t, spec)
		if seen := w.look(t, spec); !seen.Table.Open || len(Lines(Want(spec), seen.Nodes)) > 0 {
			t.Errorf("open %v, %q", seen.Table.Open, Lines(Want(spec), seen.Nodes))
		}
	})
}

func TestTokenDrift(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := lockedSpec()
		for name, test := range map[string]struct {
			do    func()
			lines string
		}{
			"turned off by hand": {func() {
				head := w.hosts[0].containers[0]
				head.Spec.Env[authMode] = "disabled"
				w.token = ""
			}, "aurora-1: RAY_AUTH_MODE is not what the declared authentication needs"},
			"taken without": {func() { w.token = "" }, "aurora-1: Ray answers without its token"},
			"file gone on the head": {func() { delete(w.hosts[0].secrets, secretName) },
				"aurora-1: the GCS at 192.168.200.12:6379 wants another token: InvalidAuthToken: authentication token is missing or wrong|" +
					"aurora-1: Ray's token is gone (~/.config/spark-stack/ray/pair/auth_token)"},
			"file gone on a worker": {func() { delete(w.hosts[1].secrets, secretName) }, "aurora-2: Ray's token is gone (~/.config/spark-stack/ray/pair/auth_token)"},
			"another on a worker":   {func() { w.hosts[1].secrets[secretName] = "x" }, "aurora-2: Ray's token is not the head's"},
		} {
			w.mustUp(t, spec)
			test.do()
			got := strings.Join(Lines(Want(spec), w.look(t, spec).Nodes), "|")
			if got != "aurora-1: not a member of the cluster at 192.168.200.12:6379|"+test.lines && got != test.lines {
				t.Errorf("%s: %s", name, got)
			}
			w.mustUp(t, spec)
			if lines := Lines(Want(spec), w.look(t, spec).Nodes); len(lines) > 0 {
				t.Errorf("%s: after an apply: %q", name, lines)
			}
		}
	})
}

// TestUnprotected has a Ray that could ask for the token and does not.
func TestUnprotected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, gcstest.Config{})
		var gate *GateError
		if err := w.up(t, lockedSpec()); !errors.As(err, &gate) || gate.Findings[0].Fault != Unprotected {
			t.Errorf("got %v", err)
		}
	})
}

func TestTokenThatNobodyHas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, gcstest.Config{Token: "elsewhere"})
		var typed *Error
		if err := w.up(t, lockedSpec()); !errors.As(err, &typed) || !strings.Contains(typed.Advice, `authentication = "none"`) {
			t.Errorf("got %v (%+v)", err, typed)
		}
	})
}

// TestReadOnlyKey has agents that do not show the token: the calls name the cluster, for the agent on the
// way to put the token in.
func TestReadOnlyKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spec := lockedSpec()
		w.mustUp(t, spec)
		for _, host := range w.hosts {
			host.readOnly = true
		}
		shown, err := Credential(t.Context(), spec, w.machines["10.1.230.180"])
		if want := (gcs.Credential{Cluster: "pair"}); err != nil || shown != want {
			t.Errorf("%+v, %v", shown, err)
		}
	})
}
