package engine

import (
	"context"
	"net/http"
	"testing"
)

// drop closes a connection in place of an answer, as an engine does that is restarted.
func drop(w http.ResponseWriter, _ *http.Request) {
	if hijacker, ok := w.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

// TestResend: what changes something is sent once, whatever becomes of its answer; what only looks is
// sent again when the connection had been used before.
func TestResend(t *testing.T) {
	ignore := func(_ any, err error) error { return err }
	tests := map[string]struct {
		method, path string
		call         func(context.Context, Engine) error
		again        bool
	}{
		"create": {http.MethodPost, "/containers/create", func(ctx context.Context, e Engine) error {
			return ignore(e.Create(ctx, ContainerSpec{Name: "b", Image: "i"}))
		}, false},
		"start": {http.MethodPost, "/containers/a/start", func(ctx context.Context, e Engine) error { return e.Start(ctx, "a") }, false},
		"exec": {http.MethodPost, "/containers/a/exec", func(ctx context.Context, e Engine) error {
			return ignore(e.Exec(ctx, "a", []string{"true"}))
		}, false},
		"remove": {http.MethodDelete, "/containers/" + firstID, func(ctx context.Context, e Engine) error { return e.Remove(ctx, "a", 0) }, false},
		"remove volume": {http.MethodDelete, "/volumes/v", func(ctx context.Context, e Engine) error {
			return e.RemoveVolume(ctx, "v", "ours")
		}, false},
		"look":  {http.MethodGet, "/containers/a/json", func(ctx context.Context, e Engine) error { return ignore(e.Container(ctx, "a")) }, true},
		"list":  {http.MethodGet, "/containers/json", func(ctx context.Context, e Engine) error { return ignore(e.Containers(ctx, "", "a")) }, true},
		"image": {http.MethodGet, "/images/i/json", func(ctx context.Context, e Engine) error { return ignore(e.Image(ctx, "i")) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			e := f.engine(t)
			if _, err := e.Create(t.Context(), ContainerSpec{Name: "a", Image: "i"}); err != nil {
				t.Fatal(err)
			}
			f.answer["GET /images/i/json"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]any{"Id": "sha256:1"}) }
			f.answer["GET /volumes/v"] = func(w http.ResponseWriter, _ *http.Request) {
				reply(w, map[string]any{"Name": "v", "Labels": map[string]string{"ours": ""}})
			}
			f.answer["POST /containers/"+firstID+"/stop"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
			request := test.method + " " + test.path
			usual := f.answer[request]
			before := f.seen(test.method, test.path)
			f.answer[request] = func(w http.ResponseWriter, r *http.Request) {
				if test.again {
					f.answer[request] = usual
				}
				drop(w, r)
			}
			err := test.call(t.Context(), e)
			sent := f.seen(test.method, test.path) - before
			switch {
			case test.again && (err != nil || sent != 2):
				t.Errorf("sent %d times: %v", sent, err)
			case !test.again && (kindOf(err) != Lost || sent != 1):
				t.Errorf("sent %d times: %v", sent, err)
			}
		})
	}
}
