package hosttest

import (
	"encoding/json"
	"net/http"
	"time"
)

// api is the OpenAI-compatible HTTP server of a ready vLLM.
type api struct {
	server   *serveProgram
	listener *backlog
	http     *http.Server
}

func newAPI(s *serveProgram) *api {
	a := &api{server: s, listener: newBacklog("vllm")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"version": "0.17.1"})
	})
	mux.HandleFunc("GET /v1/models", a.models)
	mux.HandleFunc("POST /v1/completions", a.complete)
	mux.HandleFunc("POST /v1/chat/completions", a.complete)
	a.http = &http.Server{Handler: a.authenticated(mux), ReadHeaderTimeout: time.Minute}
	s.instance.host.fleet.tasks.Go(func() {
		_ = a.http.Serve(a.listener) // It only ends by close.
	})
	return a
}

func (a *api) close() {
	// Both only report what was closed before.
	_ = a.listener.Close()
	_ = a.http.Close()
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // The client may be gone.
}

func apiError(w http.ResponseWriter, status int, kind, text string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{
		"message": text, "type": kind, "param": nil, "code": status,
	}})
}

// authenticated guards /v1 by the API key, if the server has one.
func (a *api) authenticated(next http.Handler) http.Handler {
	key := a.server.arguments.text(a.server.key, "--api-key")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/health" || r.URL.Path == "/version"
		if key != "" && !open && r.Header.Get("Authorization") != "Bearer "+key {
			writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "Unauthorized"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// names are the names under which the model is served.
func (a *api) names() []string {
	if names := a.server.arguments.values["--served-model-name"]; len(names) > 0 {
		return names
	}
	return []string{a.server.model()}
}

func (a *api) models(w http.ResponseWriter, _ *http.Request) {
	list := []map[string]any{}
	for _, name := range a.names() {
		list = append(list, map[string]any{
			"id": name, "object": "model", "owned_by": "vllm", "root": a.server.model(), "parent": nil,
			"created":       a.server.born.Unix(),
			"max_model_len": a.server.arguments.number(4096, "--max-model-len"),
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (a *api) complete(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model string `json:"model"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		apiError(w, http.StatusBadRequest, "BadRequestError", err.Error())
		return
	}
	found := request.Model == "" // vLLM takes the only model then.
	for _, name := range a.names() {
		found = found || name == request.Model
	}
	if !found {
		apiError(w, http.StatusNotFound, "NotFoundError", "The model `"+request.Model+"` does not exist.")
		return
	}
	if a.dies() {
		apiError(w, http.StatusInternalServerError, "InternalServerError", "EngineCore encountered an issue.")
		return
	}
	choice := map[string]any{"index": 0, "finish_reason": "length", "text": " blue and clear"}
	object := "text_completion"
	if r.URL.Path == "/v1/chat/completions" {
		delete(choice, "text")
		choice["message"] = map[string]any{"role": "assistant", "content": "It is blue."}
		object = "chat.completion"
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": "cmpl-1", "object": object, "model": a.names()[0], "created": time.Now().Unix(),
		"choices": []any{choice},
		"usage":   map[string]any{"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7},
	})
}

// dies ends the server at a completion, if the host's fault says so.
func (a *api) dies() bool {
	c := a.server.instance
	fleet := c.host.fleet
	fleet.mu.Lock()
	failing := c.host.fault.completions
	fleet.mu.Unlock()
	if failing {
		// The answer goes out before the process ends.
		fleet.tasks.Go(func() {
			time.Sleep(100 * time.Millisecond)
			fleet.mu.Lock()
			defer fleet.mu.Unlock()
			if c.program == a.server {
				c.logf("RuntimeError: CUDA error: an illegal memory access was encountered")
				c.exit(1)
			}
		})
	}
	return failing
}
