package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
)

// maxParallel bounds the questions that are put to one engine at a time.
const maxParallel = 8

// containers puts all the questions that a plan has for an engine: here they cost no round trip.
func (s *server) containers(ctx context.Context, request agent.ContainersRequest) (agent.EngineAnswers, error) {
	var answers agent.EngineAnswers
	ping, err := s.askEngine(ctx, http.MethodHead, request.Socket, filter.EngineRequest{Question: filter.Ping})
	if err != nil {
		return answers, err
	}
	answers.Answers = append(answers.Answers, named("/_ping", ping))
	if ping.status != http.StatusOK {
		return answers, nil // the client reads what that means
	}
	question := filter.EngineRequest{Question: filter.List, API: lower(request.API, ping.header["Api-Version"])}
	list, err := s.askEngine(ctx, http.MethodGet, request.Socket, question)
	if err != nil {
		return answers, err
	}
	answers.Answers = append(answers.Answers, named(question.Bare(), list))
	if list.status != http.StatusOK {
		return answers, nil
	}
	var found []listed
	if err := json.Unmarshal(list.body, &found); err != nil {
		return answers, fmt.Errorf("read the engine's list of containers: %w", err)
	}
	details, err := s.details(ctx, request.Socket, question.API, found)
	answers.Answers = append(answers.Answers, details...)
	return answers, err
}

// details asks for each container and for its image, by name and by id.
func (s *server) details(ctx context.Context, socket, api string, found []listed) ([]agent.EngineAnswer, error) {
	var questions []filter.EngineRequest
	seen := map[string]bool{}
	add := func(question filter.Question, name string) {
		request := filter.EngineRequest{Question: question, API: api, Name: name}
		// What the engine names is read as a client's own question is.
		if again, err := filter.Engine(http.MethodGet, request.Path()); err == nil && again == request && !seen[request.Bare()] {
			seen[request.Bare()] = true
			questions = append(questions, request)
		}
	}
	for _, one := range found {
		add(filter.Container, one.ID)
		add(filter.Image, one.Image)
		add(filter.Image, one.ImageID)
	}
	answers := make([]agent.EngineAnswer, len(questions))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, question := range questions {
		group.Go(func() error {
			answer, err := s.askEngine(ctx, http.MethodGet, socket, question)
			answers[i] = named(question.Bare(), answer)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err // they have one cause; the first says it
	}
	return answers, nil
}

func named(path string, answer passed) agent.EngineAnswer {
	return agent.EngineAnswer{Path: path, Status: answer.status, Header: answer.header, Body: answer.body}
}

// lower is the lower of two versions of the engine's API; empty, which means the engine's own, if
// either cannot be read.
func lower(a, b string) string {
	minor := func(version string) (int, bool) {
		text, found := strings.CutPrefix(version, "1.")
		number, err := strconv.Atoi(text)
		return number, found && err == nil && number >= 0
	}
	first, ok := minor(a)
	second, alsoOK := minor(b)
	if !ok || !alsoOK {
		return ""
	}
	return "1." + strconv.Itoa(min(first, second))
}
