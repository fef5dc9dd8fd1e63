package vllm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// askTimeout bounds a question that a healthy server answers in milliseconds.
	askTimeout = 5 * time.Second
	// completeTimeout bounds a first completion: 123 s have been seen for kernels compiled at first use.
	completeTimeout = 5 * time.Minute
	// bodyLimit bounds what is read of an answer, in bytes.
	bodyLimit = 1 << 20
)

// StatusError is an answer of the server that is not 200.
type StatusError struct {
	Path   string
	Status int
	// Message is the server's own sentence, shortened.
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered %d: %s", e.Path, e.Status, e.Message)
}

// Client asks one server.
type Client struct {
	http *http.Client
	base string
	key  Key
}

// NewClient asks the server at an address over a transport: a fleet's machine.
func NewClient(transport http.RoundTripper, address string) *Client {
	return &Client{base: "http://" + address, http: &http.Client{Transport: transport}}
}

// With is the client with an API key.
func (c *Client) With(key Key) *Client {
	keyed := *c
	keyed.key = key
	return &keyed
}

// Health is nil if /health answers 200. That is no proof that the server can complete anything.
func (c *Client) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.ask(ctx, http.MethodGet, "/health", nil, nil)
}

// Models are the names under which models are served.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := c.ask(ctx, http.MethodGet, "/v1/models", nil, &answer); err != nil {
		return nil, err
	}
	var names []string
	for _, one := range answer.Data {
		names = append(names, one.ID)
	}
	return names, nil
}

// Complete continues a prompt by at most tokens tokens; the text may be empty.
func (c *Client) Complete(ctx context.Context, model, prompt string, tokens int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	var answer struct {
		Choices []struct {
			Text string `json:"text"`
		} `json:"choices"`
	}
	request := map[string]any{"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
	if err := c.ask(ctx, http.MethodPost, "/v1/completions", request, &answer); err != nil {
		return "", err
	}
	if len(answer.Choices) == 0 {
		return "", errors.New("/v1/completions answered without a choice")
	}
	return answer.Choices[0].Text, nil
}

// ask sends one request and decodes a 200 answer.
func (c *Client) ask(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key.text() != "" {
		request.Header.Set("Authorization", "Bearer "+c.key.text())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		message := strings.TrimSpace(string(raw))
		return &StatusError{Path: path, Status: response.StatusCode, Message: message[:min(len(message), 400)]}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("%s answered what is not its JSON: %w", path, err)
	}
	return nil
}
