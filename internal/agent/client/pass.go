package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// containersTimeout bounds a look at all containers, which an engine that is well answers within
// tenths of a second.
const containersTimeout = 30 * time.Second

const stepContainers = "look at the containers"

var errContainers = fmt.Errorf("the engine took the connection and does not answer within %s: it is stuck or still starting (systemctl status docker)", containersTimeout)

// Containers implements agent.Agent.
func (c *connection) Containers(ctx context.Context, request agent.ContainersRequest) (agent.EngineAnswers, error) {
	if request == c.asked {
		if answers, taken, err := c.containers.take(ctx); taken {
			return answers, c.taken(ctx, stepContainers, err)
		}
	}
	return c.readContainers(ctx, request)
}

func (c *connection) readContainers(ctx context.Context, request agent.ContainersRequest) (agent.EngineAnswers, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, containersTimeout, errContainers)
	defer cancel()
	var answers agent.EngineAnswers
	err := c.ask(ctx, stepContainers, wire.PathContainers, request, &answers)
	var failed *agent.Error
	if errors.As(err, &failed) && errors.Is(err, errContainers) {
		failed.Code, failed.Message = agent.RefusedEngineDown, errContainers.Error()
	}
	return answers, err
}

// AskEngine implements agent.Agent.
func (c *connection) AskEngine(socket string, request *http.Request) (*http.Response, error) {
	return c.pass("ask the Docker engine at "+socket, wire.PrefixEngine, wire.HeaderSocket, socket, request)
}

// AskProgram implements agent.Agent.
func (c *connection) AskProgram(address string, request *http.Request) (*http.Response, error) {
	return c.pass("ask "+address+" for "+request.URL.Path, wire.PrefixProgram, wire.HeaderTarget, address, request)
}

// pass sends a request that the agent passes on.
func (c *connection) pass(step, prefix, header, target string, request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	out := request.Clone(ctx)
	out.URL = &url.URL{Scheme: "http", Host: "agent", Path: prefix + request.URL.Path, RawQuery: request.URL.RawQuery}
	if request.URL.RawPath != "" {
		out.URL.RawPath = prefix + request.URL.RawPath
	}
	out.Host = "agent"
	if out.Header == nil {
		out.Header = http.Header{}
	}
	out.Header.Set(header, target)
	response, err := c.http.RoundTrip(out)
	if err != nil {
		return nil, c.broken(ctx, step, err)
	}
	if response.Header.Get(wire.HeaderFailure) != "" {
		return nil, c.failure(step, response)
	}
	response.Body = &bounded{response.Body, maxAnswer}
	return response, nil
}
