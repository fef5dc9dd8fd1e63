package engine

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestVersion(t *testing.T) {
	f := startFake(t)
	f.apiVersion, f.release = "1.41", "20.10.24"
	e := f.engine(t)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			if v, err := e.Version(t.Context()); err != nil || v != (Version{Server: "20.10.24", API: "1.41"}) {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	wait.Wait()
	if n := f.seen(http.MethodHead, "/_ping"); n != 1 {
		t.Errorf("%d pings", n)
	}
	if n := f.seen(http.MethodGet, "/version"); n != 0 {
		t.Errorf("%d long answers were asked for", n)
	}
}

func TestVersionsThatDoNotServe(t *testing.T) {
	// As Podman 4.3.1 of Debian 12 answers.
	podman := map[string]any{"Version": "4.3.1", "ApiVersion": "1.41", "Components": []map[string]any{
		{"Name": "Podman Engine", "Version": "4.3.1", "Details": map[string]string{"APIVersion": "4.3.1", "MinAPIVersion": "4.0.0"}},
		{"Name": "Conmon", "Version": "conmon version 2.1.6, commit: unknown"},
	}}
	for name, test := range map[string]struct {
		api, release string
		header       map[string]string
		long         any
		kind         Kind
		words        []string
	}{
		"engine 19.03": {api: "1.40", release: "19.03.15", kind: TooOld, words: []string{"Docker engine 19.03.15 speaks the API version 1.40 at most", "1.41"}},
		"engine 1.12":  {api: "1.24", release: "1.12.6", kind: TooOld, words: []string{"1.12.6"}},
		"no version":   {kind: NotDocker, words: []string{"/var/run/docker.sock is no Docker engine: it names no API version"}},
		"Podman": {
			api: "1.41", header: map[string]string{"Server": "Libpod/4.3.1 (linux)", "Libpod-Api-Version": "4.3.1"},
			kind: NotDocker, words: []string{"is Podman 4.3.1, which is not supported"},
		},
		"Podman, older than its imitation may be": {
			api: "1.40", header: map[string]string{"Server": "Libpod/3.0.1 (linux)", "Libpod-Api-Version": "3.0.1"},
			kind: NotDocker, words: []string{"is Podman 3.0.1"},
		},
		"Podman behind a proxy": {api: "1.41", header: map[string]string{"Server": "nginx/1.22.1"}, long: podman, kind: NotDocker, words: []string{"is Podman 4.3.1"}},
		"something else": {
			api: "1.43", header: map[string]string{"Server": "imitation"}, kind: NotDocker, words: []string{"is no Docker engine: it calls itself Imitation"},
			long: map[string]any{"Version": "1", "Components": []map[string]any{{"Name": "Imitation", "Version": "1"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.apiVersion, f.release, f.header = test.api, test.release, test.header
			f.answer["GET /version"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, test.long) }
			_, err := f.engine(t).Containers(t.Context(), "x")
			if kindOf(err) != test.kind {
				t.Errorf("got %v", err)
			}
			for _, words := range test.words {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%q is missing in %v", words, err)
				}
			}
		})
	}
}

func TestVersionBehindAProxy(t *testing.T) {
	for name, components := range map[string][]map[string]any{
		"Docker":                   {{"Name": "Engine", "Version": "28.3.3"}, {"Name": "containerd"}},
		"an engine without a list": nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.header = map[string]string{"Server": ""}
			f.answer["GET /version"] = func(w http.ResponseWriter, _ *http.Request) {
				answer := map[string]any{"Version": "28.3.3"}
				if components != nil {
					answer["Components"] = components
				}
				reply(w, answer)
			}
			if v, err := f.engine(t).Version(t.Context()); err != nil || v != (Version{Server: "28.3.3", API: "1.44"}) {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}
