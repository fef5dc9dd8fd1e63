package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// node is what lies behind an agent: an engine and programs that note what reaches them.
type node struct {
	t      *testing.T
	mutex  sync.Mutex
	asked  []string
	header http.Header
	body   string
	socket string
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, socket: filepath.Join(t.TempDir(), "docker.sock")}
	n.serve("unix", n.socket, n.engine)
	return n
}

func (n *node) serve(network, address string, handler http.HandlerFunc) string {
	n.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(n.t.Context(), network, address)
	if err != nil {
		n.t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: n.noting(handler), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }() // It ends by Close.
	n.t.Cleanup(func() { _ = web.Close() })
	return listener.Addr().String()
}

func (n *node) noting(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.mutex.Lock()
		n.asked = append(n.asked, r.Method+" "+r.RequestURI)
		n.header, n.body = r.Header.Clone(), string(body)
		n.mutex.Unlock()
		handler(w, r)
	})
}

// reached is what came through since the last question, sorted.
func (n *node) reached() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	asked := n.asked
	n.asked = nil
	slices.Sort(asked)
	return asked
}

const (
	ours    = `{"Id":"0001","Name":"/ray-pair","Image":"sha256:aa","Config":{"Image":"vllm:1","Labels":{"io.spark-stack.spark.resource":"ray_cluster"}}}`
	foreign = `{"Id":"0002","Name":"/postgres","Image":"sha256:bb","Config":{"Image":"postgres:17","Env":["POSTGRES_PASSWORD=hunter2"]}}`
)

func (n *node) engine(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.47")
	w.Header().Set("Server", "Docker/28.3.3 (linux)")
	w.Header().Set("Set-Cookie", "secret=1")
	switch strings.TrimPrefix(r.URL.Path, "/v1.47") {
	case "/_ping":
	case "/containers/json":
		_, _ = io.WriteString(w, `[{"Id":"0001","Names":["/ray-pair"],"Image":"vllm:1","ImageID":"sha256:aa","Labels":{"io.spark-stack.spark.resource":"ray_cluster"}},
			{"Id":"0002","Names":["/postgres"],"Image":"postgres:17","ImageID":"sha256:bb","Command":"postgres -c hunter2"},{"Id":"0003","Names":["/vllm-byhand"],"Image":"gone:1","ImageID":"sha256:cc"}]`)
	case "/containers/0001/json", "/containers/ray-pair/json":
		_, _ = io.WriteString(w, ours)
	case "/containers/0002/json", "/containers/postgres/json":
		_, _ = io.WriteString(w, foreign)
	case "/containers/0003/json":
		_, _ = io.WriteString(w, `{"Id":"0003","Name":"/vllm-byhand"}`)
	case "/images/vllm:1/json", "/images/sha256:aa/json":
		_, _ = io.WriteString(w, `{"Id":"sha256:aa"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"no such thing"}`)
	}
}

// start runs an agent over a pipe.
func start(t *testing.T, options server.Options) agent.Agent {
	t.Helper()
	if options.User == nil {
		options.User = &agent.User{Name: "aurora", Groups: []string{"aurora", "sudo"}, Home: "/home/aurora"}
	}
	helper, err := client.Start(t.Context(), "spark-a", client.StarterFunc(func(context.Context, string) (*client.Process, error) {
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(context.WithoutCancel(t.Context()), far, options) }()
		return &client.Process{
			Stdin: near, Stdout: near, Stderr: func() string { return "" },
			Wait: func() (int, error) { return 0, <-ended }, Close: near.Close,
		}, nil
	}), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = helper.Close() })
	return helper
}

func codeOf(err error) string {
	var failed *agent.Error
	if !errors.As(err, &failed) {
		return ""
	}
	return failed.Code
}

// raw asks with a path that is not cleaned by anybody on the way.
func raw(t *testing.T, method, target, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://docker.invalid/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	request.URL.Path, request.URL.RawQuery = path, query
	return request
}

// answered is an answer read to its end.
type answered struct {
	status          int
	header, trailer http.Header
	body            string
}

func askEngine(helper agent.Agent, socket string, request *http.Request) (answered, error) {
	response, err := helper.AskEngine(socket, request)
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header, response.Trailer, string(body)}, err
}

func askProgram(helper agent.Agent, address string, request *http.Request) (answered, error) {
	response, err := helper.AskProgram(address, request)
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header, response.Trailer, string(body)}, err
}

func TestContainersInOneCall(t *testing.T) {
	n := newNode(t)
	helper := start(t, server.Options{ReadOnly: true, DockerSocket: n.socket})
	answers, err := helper.Containers(t.Context(), agent.ContainersRequest{Socket: n.socket, API: "1.56"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, answer := range answers.Answers {
		got[answer.Path] = answer.Status
		if strings.Contains(string(answer.Body), "hunter2") || strings.Contains(fmt.Sprint(answer.Header), "secret") {
			t.Errorf("%s shows what is nobody's business: %s", answer.Path, answer.Body)
		}
	}
	want := map[string]int{
		"/_ping": 200, "/containers/json?all=1": 200, "/containers/0001/json": 200, "/containers/0003/json": 200,
		"/images/vllm:1/json": 200, "/images/sha256:aa/json": 200, "/images/gone:1/json": 404, "/images/sha256:cc/json": 404,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if asked := n.reached(); !slices.Contains(asked, "GET /v1.47/containers/json?all=1") {
		t.Errorf("not in the engine's own version: %q", asked)
	}
}

func TestEnginePassesWhatAPlanReads(t *testing.T) {
	n := newNode(t)
	helper := start(t, server.Options{ReadOnly: true, DockerSocket: n.socket})
	request := raw(t, http.MethodGet, "/v1.47/containers/ray-pair/json", "a body")
	for name, value := range map[string]string{
		"X-Http-Method-Override": "DELETE", "Authorization": "Bearer x", "X-Registry-Auth": "x", "Range": "bytes=0-1", "Expect": "100-continue", "Cookie": "a=b",
	} {
		request.Header.Set(name, value)
	}
	response, err := askEngine(helper, n.socket, request)
	if err != nil {
		t.Fatal(err)
	}
	if response.body != ours || response.status != 200 || response.header.Get("Api-Version") != "1.47" {
		t.Errorf("%d %s", response.status, response.body)
	}
	if response.header.Get("Set-Cookie") != "" {
		t.Error("a header of the engine comes through that nobody needs")
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name := range n.header {
		if name != "User-Agent" {
			t.Errorf("the header %s comes through", name)
		}
	}
	if n.body != "" {
		t.Errorf("the body %q comes through", n.body)
	}
}

func TestEngineRefusals(t *testing.T) {
	n := newNode(t)
	for mode, options := range map[string]server.Options{"read-only": {ReadOnly: true, DockerSocket: n.socket}, "full": {}} {
		helper := start(t, options)
		for _, test := range []struct{ method, target string }{
			{"POST", "/v1.47/containers/create"}, {"POST", "/containers/ray-pair/exec"}, {"DELETE", "/containers/ray-pair"}, {"POST", "/build"}, {"PUT", "/containers/ray-pair/archive"},
			{"GET", "/containers/ray-pair/archive"}, {"GET", "/containers/ray-pair/logs?follow=1&stdout=1"}, {"GET", "/containers/ray-pair/export"}, {"GET", "/events"}, {"GET", "/images/vllm:1/get"},
			{"GET", "/containers/../events"}, {"GET", "/containers/./ray-pair/json"}, {"GET", "//containers/json"}, {"GET", "/containers/ray-pair//json"}, {"GET", "/images/../events"},
			{"GET", "/containers/%2e%2e/json"}, {"GET", "/containers/ray-pair;x/json"}, {"GET", "/containers/json?filters={}"}, {"GET", "/containers/ray-pair/json?size=1"},
			{"HEAD", "/containers/ray-pair/archive"}, {"OPTIONS", "/_ping"}, {"TRACE", "/_ping"}, {"GET", "/containers/ray-pair/json/../../../events"},
		} {
			response, err := askEngine(helper, n.socket, raw(t, test.method, test.target, ""))
			if code := codeOf(err); code != agent.RefusedFilter {
				t.Errorf("%s: %s %s: %v, %v", mode, test.method, test.target, response, err)
			}
		}
		if asked := n.reached(); len(asked) != 0 {
			t.Errorf("%s: the engine was asked %q", mode, asked)
		}
		if _, err := askEngine(helper, n.socket, raw(t, http.MethodGet, "/containers/postgres/json", "")); codeOf(err) != agent.RefusedFilter || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: somebody else's container: %v", mode, err)
		}
		n.reached()
	}
}

func TestSocketOfAForcedCommand(t *testing.T) {
	n, other := newNode(t), newNode(t)
	helper := start(t, server.Options{ReadOnly: true, DockerSocket: n.socket})
	_, err := helper.Containers(t.Context(), agent.ContainersRequest{Socket: other.socket})
	if codeOf(err) != agent.RefusedFilter || !strings.Contains(err.Error(), "--docker-socket "+other.socket) {
		t.Errorf("got %v", err)
	}
	if _, err := askEngine(helper, other.socket, raw(t, http.MethodGet, "/_ping", "")); codeOf(err) != agent.RefusedFilter {
		t.Errorf("got %v", err)
	}
	if asked := other.reached(); len(asked) != 0 {
		t.Errorf("another engine was asked %q", asked)
	}
	if _, err := start(t, server.Options{}).Containers(t.Context(), agent.ContainersRequest{Socket: "docker.sock"}); codeOf(err) != agent.RefusedFilter {
		t.Errorf("a relative socket: %v", err)
	}
}

// A key that may only look sees the folders that its line names; neither dots nor links lead out of them.
func TestFoldersOfAForcedCommand(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"models/tiny", "models-private", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "secret"), []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"models/out": "../etc", "weights": "models"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	limited := server.Options{ReadOnly: true, PathRoot: root, Folders: []string{"/models", "/gone"}}
	helper := start(t, limited)
	for folder, want := range map[string]string{
		"/models": "", "/models/tiny": "", "/models/new/one": "", "/gone/x": "", "/weights/tiny": "", "/etc/../models": "",
		"/": agent.RefusedFilter, "/etc": agent.RefusedFilter, "/models-private": agent.RefusedFilter,
		"/models/../etc": agent.RefusedFilter, "/models/out": agent.RefusedFilter, "/models/out/new": agent.RefusedFilter, "/home/aurora": agent.RefusedFilter,
	} {
		_, err := helper.List(t.Context(), agent.ListRequest{Folder: folder})
		if codeOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("list %s: %v", folder, err)
		}
		err = helper.Digest(t.Context(), agent.DigestRequest{Folder: folder, Files: []agent.File{{Name: "secret"}}}, nil)
		if want != "" && codeOf(err) != want {
			t.Errorf("digest %s: %v", folder, err)
		}
	}
	_, err := helper.List(t.Context(), agent.ListRequest{Folder: "/etc"})
	if err == nil || !strings.Contains(err.Error(), "shows the folders /models, /gone, and /etc was asked for; add --folder /etc") {
		t.Errorf("it says %v", err)
	}
	limited.ReadOnly = false
	if _, err := start(t, limited).List(t.Context(), agent.ListRequest{Folder: "/etc"}); err != nil {
		t.Errorf("who may change everything is limited: %v", err)
	}
}

func TestEngineThatIsNotThere(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.sock")
	for name, test := range map[string]struct {
		dial error
		code string
		says string
	}{
		"no socket":     {nil, agent.RefusedEngineDown, "there is no socket at " + gone},
		"no permission": {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, agent.RefusedEngineDenied, "user aurora (groups: aurora sudo) may not use " + gone},
		"stopped":       {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, agent.RefusedEngineDown, "nothing answers behind " + gone},
	} {
		options := server.Options{}
		if test.dial != nil {
			options.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, test.dial }
		}
		_, err := start(t, options).Containers(t.Context(), agent.ContainersRequest{Socket: gone})
		if codeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever has an account on the node may listen on a port of it, and shall not be given the token there.
func TestTokenForStrangers(t *testing.T) {
	n := newNode(t)
	address := n.serve("tcp", "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		uid    int
		port   int
		passes bool
	}{
		"a GCS of root":     {0, number, true},
		"of the login user": {os.Getuid(), number, true},
		"of a stranger":     {os.Getuid() + 4711, number, false},
		"of nobody":         {0, number ^ 1, false},
	} {
		listeners := func() ([]agent.Listener, error) { return []agent.Listener{{Port: test.port, UID: test.uid}}, nil }
		helper := start(t, server.Options{ReadOnly: true, PathRoot: t.TempDir(), Listeners: listeners})
		request := raw(t, http.MethodPost, "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo", "")
		request.Header.Set(wire.HeaderRayToken, "pair")
		if _, err := askProgram(helper, address, request); (err == nil) != test.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProgram(t *testing.T) {
	n := newNode(t)
	address := n.serve("tcp", "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ray.rpc") {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write([]byte{0, 0, 0, 0, 1, 'x'})
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
			w.Header().Set(http.TrailerPrefix+"Other", "secret")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "not yet")
	})
	root := t.TempDir()
	folder := filepath.Join(root, "/home/aurora", agent.SecretFolder, "ray/pair")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "auth_token"), []byte("0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	helper := start(t, server.Options{ReadOnly: true, PathRoot: root})

	response, err := askProgram(helper, address, raw(t, http.MethodGet, "/health", ""))
	if err != nil {
		t.Fatal(err)
	}
	if response.body != "not yet" || response.status != 503 {
		t.Errorf("%d %q", response.status, response.body)
	}
	const nodes = "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"
	for name, test := range map[string]struct{ header, value, want string }{
		"no token":          {"X-Other", "1", ""},
		"own token":         {"Authorization", "Bearer own", "Bearer own"},
		"no bearer":         {"Authorization", "Basic own", ""},
		"the node's token":  {wire.HeaderRayToken, "pair", "Bearer 0123"},
		"of no cluster":     {wire.HeaderRayToken, "other", ""},
		"of another folder": {wire.HeaderRayToken, "../../pair", "refused"},
		"of another kind":   {wire.HeaderRayToken, "..", "refused"},
	} {
		request := raw(t, http.MethodPost, nodes, "an evil request")
		request.Header.Set(test.header, test.value)
		response, err := askProgram(helper, address, request)
		if test.want == "refused" {
			if err == nil {
				t.Errorf("%s: it passes", name)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if response.body != "\x00\x00\x00\x00\x01x" || response.trailer.Get("Grpc-Status") != "0" || response.trailer.Get("Other") != "" {
			t.Errorf("%s: %q %v", name, response.body, response.trailer)
		}
		n.mutex.Lock()
		if n.body != "\x00\x00\x00\x00\x00" || n.header.Get("Authorization") != test.want || n.header.Get(wire.HeaderRayToken) != "" || n.header.Get("X-Other") != "" {
			t.Errorf("%s: the program was sent %q with %v", name, n.body, n.header)
		}
		n.mutex.Unlock()
	}
	n.reached()
	for _, test := range []struct{ address, method, target, code string }{
		{"192.0.2.7:80", "GET", "/health", agent.RefusedFilter},
		{"localhost:80", "GET", "/health", agent.RefusedFilter},
		{address, "GET", "/metrics", agent.RefusedFilter},
		{address, "POST", "/v1/completions", agent.RefusedFilter},
		{address, "POST", "/ray.rpc.JobInfoGcsService/AddJob", agent.RefusedFilter},
		{"127.0.0.1:1", "GET", "/health", agent.RefusedConnect},
		{"127.0.0.1:1", "POST", nodes, agent.RefusedConnect},
	} {
		if _, err := askProgram(helper, test.address, raw(t, test.method, test.target, "")); codeOf(err) != test.code {
			t.Errorf("%s %s %s: %v", test.address, test.method, test.target, err)
		}
	}
	if asked := n.reached(); len(asked) != 0 {
		t.Errorf("the program was asked %q", asked)
	}
}

func TestOnlyTheNodesOwnAddresses(t *testing.T) {
	var dialled []string
	options := server.Options{
		Interfaces: func() ([]agent.Interface, error) {
			return []agent.Interface{{Name: "enp1s0f0np0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")}}}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return nil, syscall.ECONNREFUSED
		},
	}
	helper := start(t, options)
	for _, address := range []string{"192.0.2.7:8000", "192.0.2.8:8000"} {
		_, _ = askProgram(helper, address, raw(t, http.MethodGet, "/health", "")) // Neither answers.
	}
	if want := []string{"192.0.2.7:8000"}; !slices.Equal(dialled, want) {
		t.Errorf("dialled %q", dialled)
	}
}

func TestReadOnlyRefusesWhatChanges(t *testing.T) {
	home := t.TempDir()
	options := server.Options{ReadOnly: true, PathRoot: home, DockerSocket: "/var/run/docker.sock"}
	helper := start(t, options)
	if !helper.ReadOnly() {
		t.Error("it does not say so")
	}
	for name, call := range map[string]func() error{
		"clean":         func() error { return helper.Clean(t.Context(), "/models") },
		"uninstall":     func() error { return helper.Uninstall(t.Context()) },
		"read secret":   func() error { _, _, err := helper.ReadSecret(t.Context(), "ray/pair/auth_token"); return err },
		"write secret":  func() error { return helper.WriteSecret(t.Context(), "ray/pair/auth_token", "x") },
		"remove secret": func() error { return helper.RemoveSecret(t.Context(), "ray/pair/auth_token") },
		"receive":       func() error { return helper.Receive(t.Context(), agent.ReceiveRequest{Folder: "/models"}, nil) },
		"send":          func() error { return helper.Send(t.Context(), agent.SendRequest{Folder: "/models"}, nil) },
	} {
		if err := call(); codeOf(err) != agent.RefusedReadOnly {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := helper.List(t.Context(), agent.ListRequest{Folder: "/models"}); err != nil {
		t.Error("a listing is refused:", err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
	if start(t, server.Options{}).ReadOnly() {
		t.Error("a full agent says that it may only look")
	}
}
