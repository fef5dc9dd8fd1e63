package vllm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	// firstTokens is the length of the first answer that is asked for; moreTokens is tried when it was
	// empty: the first tokens of some models are marks that vLLM takes out.
	firstTokens = 16
	moreTokens  = 128
)

// message is an answer of a chat. Reasoning has had two names.
type message struct {
	Content          string `json:"content"`
	Reasoning        string `json:"reasoning"`
	ReasoningContent string `json:"reasoning_content"`
	ToolCalls        []any  `json:"tool_calls"`
}

// empty says that a model said and thought nothing.
func (m message) empty() bool {
	return m.Content == "" && m.Reasoning == "" && m.ReasoningContent == "" && len(m.ToolCalls) == 0
}

// Chat asks one question; silent says that nothing came back, neither content nor reasoning.
func (c *Client) Chat(ctx context.Context, model, question string, tokens int) (silent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	var answer struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	request := map[string]any{
		"model": model, "max_tokens": tokens, "temperature": 0,
		"messages": []map[string]string{{"role": "user", "content": question}},
	}
	if err := c.ask(ctx, http.MethodPost, "/v1/chat/completions", request, &answer); err != nil {
		return false, err
	}
	if len(answer.Choices) == 0 {
		return false, errors.New("/v1/chat/completions answered without a choice")
	}
	return answer.Choices[0].Message.empty(), nil
}

// Proof is one short answer: of a chat, whose content or reasoning must not be empty, or, from a model
// without a chat template, a completion.
func (c *Client) Proof(ctx context.Context, model string) error {
	for _, tokens := range []int{firstTokens, moreTokens} {
		silent, err := c.Chat(ctx, model, "Say hello.", tokens)
		if noChat(err) {
			_, err = c.Complete(ctx, model, "Hello", 1)
			return err
		}
		if err != nil || !silent {
			return err
		}
	}
	return fmt.Errorf("an answer of %d tokens has neither content nor reasoning: the chat template or reasoning_parser may not be the model's", moreTokens)
}

// noChat says that a server has no chats: 404 from a model that only completes, and what releases say,
// with 400 or 500, of a missing template. vLLM has no code for that.
func noChat(err error) bool {
	var answer *StatusError
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Status == http.StatusNotFound || answer.Status == http.StatusMethodNotAllowed ||
		strings.Contains(strings.ToLower(answer.Message), "chat template") || strings.Contains(answer.Message, "does not support Chat Completions")
}
