package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

const (
	// podmanHeader is on every answer of Podman, beside the API version of the Docker that it resembles.
	podmanHeader = "Libpod-Api-Version"
	// dockerComponent and podmanComponent name themselves in the answer to /version.
	dockerComponent = "Engine"
	podmanComponent = "Podman Engine"
)

// noteServer takes the release from the Server header, "Docker/28.3.3 (linux)": it comes with every
// answer, also with those to clients that are too new.
func (d *docker) noteServer(response *http.Response) {
	if response == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if podman := response.Header.Get(podmanHeader); podman != "" {
		d.podman = podman
	}
	software, _, _ := strings.Cut(response.Header.Get("Server"), " ")
	if product, release, ok := strings.Cut(software, "/"); ok {
		d.product, d.server = product, release
	}
}

// noted is what the answers so far say of the server.
func (d *docker) noted() (product, release, podman string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.product, d.server, d.podman
}

const stepNegotiate = "negotiate the API version"

// Version implements Engine.
func (d *docker) Version(ctx context.Context) (Version, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return Version{}, d.fail(ctx, stepNegotiate, context.Cause(ctx))
	}
	if d.negotiated != nil {
		return *d.negotiated, nil
	}
	ctx, cancel := d.short(ctx)
	defer cancel()
	ping, err := d.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true, ForceNegotiate: true})
	product, release, podman := d.noted()
	// Neither is refused by the library: it would go on with its own highest version when it finds the
	// engine too old, and Podman resembles an old Docker.
	if podman != "" {
		return Version{}, d.refusePodman(podman)
	}
	if ping.APIVersion != "" && older(ping.APIVersion, MinimumAPIVersion) {
		return Version{}, &Error{Kind: TooOld, Host: d.host, Step: stepNegotiate, Message: fmt.Sprintf(
			"the Docker engine %s speaks the API version %s at most; at least %s (engine 20.10) is needed",
			release, ping.APIVersion, MinimumAPIVersion)}
	}
	if err != nil {
		return Version{}, d.fail(ctx, stepNegotiate, err)
	}
	if ping.APIVersion == "" {
		return Version{}, d.refuse("it names no API version")
	}
	if product != "Docker" || release == "" { // A proxy before the socket may say another name, or none.
		if release, err = d.ask(ctx); err != nil {
			return Version{}, err
		}
	}
	d.negotiated = &Version{Server: release, API: d.api.ClientVersion()}
	return *d.negotiated, nil
}

// ask takes the release from the engine's own long answer, if that is a Docker's.
func (d *docker) ask(ctx context.Context) (string, error) {
	answer, err := d.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", d.fail(ctx, stepNegotiate, err)
	}
	named := func(name string) int {
		return slices.IndexFunc(answer.Components, func(c system.ComponentVersion) bool { return c.Name == name })
	}
	if at := named(podmanComponent); at >= 0 {
		return "", d.refusePodman(answer.Components[at].Version)
	}
	if len(answer.Components) > 0 && named(dockerComponent) < 0 {
		return "", d.refuse("it calls itself " + answer.Components[0].Name)
	}
	return answer.Version, nil
}

// refusePodman says why Podman's imitation of the Docker API does not serve: Podman 4.3 makes the
// container, without a warning and without the GPUs that were requested.
func (d *docker) refusePodman(release string) error {
	return &Error{Kind: NotDocker, Host: d.host, Step: stepNegotiate, Message: fmt.Sprintf(
		"what answers on %s is Podman %s, which is not supported: releases of it drop the request for GPUs without a word",
		d.socket, release)}
}

func (d *docker) refuse(reason string) error {
	return &Error{Kind: NotDocker, Host: d.host, Step: stepNegotiate, Message: "what answers on " + d.socket + " is no Docker engine: " + reason}
}

// older compares API versions, "1.41".
func older(a, b string) bool {
	aMajor, aMinor := splitVersion(a)
	bMajor, bMinor := splitVersion(b)
	return aMajor < bMajor || aMajor == bMajor && aMinor < bMinor
}

// splitVersion reads a malformed part as 0, which counts as too old.
func splitVersion(version string) (major, minor int) {
	first, second, _ := strings.Cut(version, ".")
	numbers := [2]int{}
	for i, part := range []string{first, second} {
		if n, err := strconv.Atoi(part); err == nil {
			numbers[i] = n
		}
	}
	return numbers[0], numbers[1]
}
