package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// engineHeaders tell a client with what it speaks.
var engineHeaders = []string{"Content-Type", "Api-Version", "Server", "Ostype", "Docker-Experimental", "Libpod-Api-Version"}

// engine passes a question on to the Docker engine.
func (s *server) engine(r *http.Request, rest string) (passed, error) {
	request, err := filter.Engine(r.Method, rest)
	if err != nil {
		return passed{}, err
	}
	return s.askEngine(r.Context(), r.Method, r.Header.Get(wire.HeaderSocket), request)
}

// askEngine asks the engine behind a socket. Of containers it shows those that are ours, or in our place.
func (s *server) askEngine(ctx context.Context, method, socket string, asked filter.EngineRequest) (passed, error) {
	if err := s.options.socket(socket); err != nil {
		return passed{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://docker.invalid"+asked.Path(), nil) //nolint:gosec // The filter made the path; the host is never resolved.
	if err != nil {
		return passed{}, err
	}
	answer, err := ask(s.lines.engine(socket), request, engineHeaders...)
	if err != nil {
		return passed{}, s.engineFailure(socket, err)
	}
	if answer.status != http.StatusOK {
		return answer, nil
	}
	switch asked.Question {
	case filter.List:
		answer.body, err = onlyOurs(answer.body)
	case filter.Container:
		err = checkOurs(answer.body, asked.Name)
	case filter.Ping, filter.Version, filter.Image:
	}
	return answer, err
}

// socket says whether a socket may be asked. A forced command names the one that it shows.
func (o Options) socket(asked string) error {
	refuse := func(format string, values ...any) error {
		return &refusal{code: agent.RefusedFilter, err: fmt.Errorf(format, values...)}
	}
	switch {
	case !strings.HasPrefix(asked, "/"):
		return refuse("%q is not the absolute path of a socket", asked)
	case o.ReadOnly && asked != o.DockerSocket:
		return refuse("this SSH key's line in authorized_keys shows the Docker engine at %s, and %s was asked for; add --docker-socket %s to the command in that line", o.DockerSocket, asked, asked)
	}
	return nil
}

// engineFailure says why an engine gave no answer.
func (s *server) engineFailure(socket string, err error) error {
	var failed unconnected
	switch {
	case !errors.As(err, &failed):
		return &refusal{code: agent.RefusedBroken, err: err}
	case errors.Is(err, fs.ErrPermission):
		user := s.options.facts().Account()
		return &refusal{code: agent.RefusedEngineDenied, err: fmt.Errorf("user %s (groups: %s) may not use %s", user.Name, strings.Join(user.Groups, " "), socket)}
	case errors.Is(err, fs.ErrNotExist):
		return &refusal{code: agent.RefusedEngineDown, err: fmt.Errorf("there is no socket at %s", socket)}
	}
	return &refusal{code: agent.RefusedEngineDown, err: fmt.Errorf("nothing answers behind %s: %w", socket, failed.error)}
}

// listed is the part of a container in the list that is read here.
type listed struct {
	ID      string `json:"Id"`
	Names   []string
	Image   string
	ImageID string
	Labels  map[string]string
}

func (l listed) ours() bool {
	_, labelled := l.Labels[agent.ContainerLabel]
	return labelled || slices.ContainsFunc(l.Names, inOurPlace)
}

// inOurPlace says whether a container's name is like those that we give.
func inOurPlace(name string) bool {
	name = strings.TrimPrefix(name, "/")
	return strings.HasPrefix(name, agent.RayNamePrefix) || strings.HasPrefix(name, agent.ServeNamePrefix)
}

// onlyOurs leaves out of a list what is not ours.
func onlyOurs(list []byte) ([]byte, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fmt.Errorf("read the engine's list of containers: %w", err)
	}
	kept := []json.RawMessage{}
	for _, raw := range all {
		var one listed
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("read the engine's list of containers: %w", err)
		}
		if one.ours() {
			kept = append(kept, raw)
		}
	}
	return json.Marshal(kept)
}

// checkOurs refuses to show a container that is not ours.
func checkOurs(inspected []byte, asked string) error {
	var one struct {
		Name   string
		Config struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(inspected, &one); err != nil {
		return fmt.Errorf("read the engine's answer: %w", err)
	}
	if _, labelled := one.Config.Labels[agent.ContainerLabel]; !labelled && !inOurPlace(one.Name) {
		return &refusal{code: agent.RefusedFilter, err: fmt.Errorf("container %s is not one that the provider made, nor in the place of one", asked)}
	}
	return nil
}
