package vllm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProof(t *testing.T) {
	reply := func(field string, value any) func(int) (int, any) {
		return func(int) (int, any) {
			return http.StatusOK, map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": nil, field: value}}}}
		}
	}
	refuse := func(status int, text string) func(int) (int, any) {
		return func(int) (int, any) { return status, map[string]any{"error": map[string]any{"message": text}} }
	}
	for name, test := range map[string]struct {
		chat func(tokens int) (int, any)
		says string // empty is a proof
		asks string // the paths
	}{
		"content":           {reply("content", "Hello"), "", "chat"},
		"reasoning":         {reply("reasoning", "The user"), "", "chat"},
		"reasoning, older":  {reply("reasoning_content", "The user"), "", "chat"},
		"a tool":            {reply("tool_calls", []any{map[string]any{}}), "", "chat"},
		"nothing":           {reply("content", ""), "neither content nor reasoning", "chat chat"},
		"something later":   {func(tokens int) (int, any) { return reply("content", strings.Repeat("x", tokens/moreTokens))(0) }, "", "chat chat"},
		"no choice":         {func(int) (int, any) { return http.StatusOK, map[string]any{} }, "without a choice", "chat"},
		"no template":       {refuse(http.StatusBadRequest, "As of transformers v4.44, default chat template is no longer allowed"), "", "chat completion"},
		"no such path":      {refuse(http.StatusNotFound, "Not Found"), "", "chat completion"},
		"the engine failed": {refuse(http.StatusInternalServerError, "EngineCore encountered an issue."), "EngineCore", "chat"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			answer := func(w http.ResponseWriter, status int, body any) {
				w.WriteHeader(status)
				_ = json.NewEncoder(w).Encode(body)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
				var request struct {
					Tokens int `json:"max_tokens"`
				}
				_ = json.NewDecoder(r.Body).Decode(&request)
				asked = append(asked, "chat")
				status, body := test.chat(request.Tokens)
				answer(w, status, body)
			})
			mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, _ *http.Request) {
				asked = append(asked, "completion")
				answer(w, http.StatusOK, map[string]any{"choices": []any{map[string]any{"text": ""}}})
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			err := NewClient(server.Client().Transport, strings.TrimPrefix(server.URL, "http://")).Proof(t.Context(), "qwen")
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v", err)
			}
			if got := strings.Join(asked, " "); got != test.asks {
				t.Errorf("asked %s", got)
			}
		})
	}
}

// A server is found ready a quarter of a second after it listens, and a long phase is told with the last
// line of the log, without what looks like a secret.
func TestStartTellsAndSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := head().onRay()
		first.script = []moment{
			{log: "Starting to load model /models/qwen...\n\n"}, {after: 33 * time.Second, log: "using hf_aaaaaaaaaabbbbbbbbbbccccccccccdddd for shard 7\n"},
			{after: 71100 * time.Millisecond, api: api("qwen", http.StatusOK)},
		}
		var phases []string
		begun := time.Now()
		if err := Start(t.Context(), deployment(), Key{}, both(first), quiet(), func(phase string) { phases = append(phases, phase) }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 71500*time.Millisecond {
			t.Errorf("ready after %s", took)
		}
		told := strings.Join(phases, "\n")
		if !strings.Contains(told, "still loading the model (30s): Starting to load model /models/qwen...\n") || !strings.Contains(told, "still loading the model (1m0s): using ") ||
			strings.Contains(told, "hf_aaaa") {
			t.Errorf("told:\n%s", told)
		}
		synctest.Wait()
	})
}

func TestLoadLimit(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{0: 30 * time.Minute, 119e9: 30*time.Minute + 2380*time.Second} {
		if got := LoadLimit(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}
