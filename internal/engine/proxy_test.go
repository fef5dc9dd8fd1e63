package engine

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// childEnvironment says to the test below that it runs in its child.
const childEnvironment = "SPARK_TEST_ENGINE_CHILD"

// TestEnvironmentIsNotFollowed: a proxy and Docker's own variables in the environment of a CI job say
// how to reach other engines. Go reads the proxies once in a process, hence the child.
func TestEnvironmentIsNotFollowed(t *testing.T) {
	if os.Getenv(childEnvironment) != "" {
		callsUnderOddEnvironment(t)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	var asked atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	address := listener.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // this very program
	child.Env = append(os.Environ(), childEnvironment+"=1",
		"DOCKER_HOST=tcp://"+address, "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH=/nonexistent", "DOCKER_API_VERSION=1.24",
		"DOCKER_CONTEXT=other", "DOCKER_CONFIG=/nonexistent", "NO_PROXY=", "no_proxy=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		child.Env = append(child.Env, name+"=http://user:pw@"+address, strings.ToLower(name)+"=http://user:pw@"+address)
	}
	output, err := child.CombinedOutput()
	if err != nil || !bytes.Contains(output, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, output)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the environment's address was dialled %d times", n)
	}
}

func callsUnderOddEnvironment(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	if version, err := e.Version(t.Context()); err != nil || version.API != "1.44" {
		t.Errorf("%+v, %v", version, err)
	}
	if _, err := e.Create(t.Context(), ContainerSpec{Name: "a", Image: "i"}); err != nil {
		t.Error(err)
	}
	if _, err := e.Containers(t.Context(), "", "a"); err != nil {
		t.Error(err)
	}
	// Its answer is a refusal; what counts is where it went.
	_, _ = e.Exec(t.Context(), "a", []string{"true"})
	for _, r := range f.requests {
		if r.URL.IsAbs() || r.Header.Get("Proxy-Authorization") != "" || strings.HasPrefix(r.RequestURI, "http") || r.Host != "docker.invalid" {
			t.Errorf("%s %s of %s: %v", r.Method, r.RequestURI, r.Host, r.Header)
		}
	}
}
