package hosttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// dialHost logs in to a host as any SSH client does.
func dialHost(t *testing.T, f *Fleet, i int) (*ssh.Client, error) {
	t.Helper()
	text, err := os.ReadFile(f.PrivateKeyFile())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	check, err := knownhosts.New(f.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ssh.Dial("tcp", net.JoinHostPort(f.Host(i).Address(), strconv.Itoa(f.Port())), &ssh.ClientConfig{
		User: User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, Timeout: 5 * time.Second,
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func mustDial(t *testing.T, f *Fleet, i int) *ssh.Client {
	t.Helper()
	c, err := dialHost(t, f, i)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// engineOf is a moby client over a streamlocal channel.
func engineOf(t *testing.T, connection *ssh.Client) *client.Client {
	t.Helper()
	docker, err := client.New(client.WithHost("unix://"+dockerSocket),
		client.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
			return connection.Dial("unix", dockerSocket)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docker.Close() })
	return docker
}

// get asks an HTTP server behind a host's connection.
func get(t *testing.T, connection *ssh.Client, method, url, body string) (int, string, error) {
	t.Helper()
	transport := &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
		return connection.Dial(network, address)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// run runs a command line and returns its output and exit code.
func run(t *testing.T, connection *ssh.Client, command string) (string, int) {
	t.Helper()
	session, err := connection.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var output, problem bytes.Buffer
	session.Stdout, session.Stderr = &output, &problem
	err = session.Run(command)
	if failed, ok := errors.AsType[*ssh.ExitError](err); ok {
		return output.String() + problem.String(), failed.ExitStatus()
	}
	if err != nil {
		t.Fatal(err)
	}
	return output.String() + problem.String(), 0
}

// eventually waits for a condition, at most two seconds.
func eventually(t *testing.T, what string, look func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); !look(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
