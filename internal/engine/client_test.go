package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fullSpec() ContainerSpec {
	return ContainerSpec{
		Name:       "ray-pair",
		Image:      "example/ray@sha256:abcd",
		Entrypoint: []string{},
		Command:    []string{"ray", "start", "--block"},
		Env:        map[string]string{"VLLM_HOST_IP": "192.168.200.12", "A": "x=y"},
		Labels:     map[string]string{"io.spark-stack.spark.name": "pair"},
		Mounts: []Mount{
			{Source: "/models", Target: "/models", ReadOnly: true},
			{Source: "ray-pair-tmp", Target: "/tmp/ray", Volume: true},
		},
		NetworkMode: "host", IPCMode: "shareable", PIDMode: "host",
		SharedMemory: 10 << 30, AllGPUs: true, Devices: []string{"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"},
		CapAdd: []string{"IPC_LOCK"}, UnlimitedMemlock: true,
	}
}

func TestCreateRoundTrip(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	for _, spec := range []ContainerSpec{fullSpec(), {
		Name: "plain", Image: "example/ray", Command: []string{"true"}, Env: map[string]string{}, NetworkMode: "bridge",
	}} {
		id, err := e.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := e.Container(t.Context(), spec.Name)
		if err != nil {
			t.Fatal(err)
		}
		want := Container{ID: id, Spec: spec, ImageID: "sha256:1234", Status: "created"}
		if difference := cmp.Diff(want, seen); difference != "" {
			t.Error(difference)
		}
	}
	host := f.containers[fmt.Sprintf("%064x", 1)].HostConfig
	if host.RestartPolicy.Name != "no" || host.Init == nil || *host.Init || host.LogConfig.Type != "" ||
		host.Mounts[1].VolumeOptions.Labels["io.spark-stack.spark.name"] != "pair" || host.Devices[0].CgroupPermissions != "rwm" {
		t.Errorf("host config: %+v", host)
	}
	if _, err := e.Create(t.Context(), fullSpec()); kindOf(err) != Conflict || !strings.Contains(err.Error(), "already in use") {
		t.Errorf("second of the name: %v", err)
	}
	if err := e.Start(t.Context(), "ray-pair"); err != nil {
		t.Fatal(err)
	}
	seen, err := e.Container(t.Context(), "ray-pair")
	if err != nil || seen.Status != "running" || !seen.StartedAt.Equal(time.Date(2026, 11, 30, 10, 20, 30, 5e8, time.UTC)) {
		t.Errorf("%+v, %v", seen, err)
	}
}

func kindOf(err error) Kind {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Kind
	}
	return -1
}

func TestContainers(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	for i, name := range []string{"vllm-b", "other", "labelled", "ray-a", "xray-a"} {
		spec := ContainerSpec{Name: name, Image: "i"}
		if i == 2 {
			spec.Labels = map[string]string{"our": ""}
		}
		if _, err := e.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	// One is gone between the list and the look at it.
	f.answer["GET /containers/"+fmt.Sprintf("%064x", 4)+"/json"] = func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "No such container")
	}
	found, err := e.Containers(t.Context(), "our", "ray-", "vllm-")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found {
		names = append(names, c.Spec.Name)
	}
	if difference := cmp.Diff([]string{"labelled", "vllm-b"}, names); difference != "" {
		t.Error(difference)
	}
	if _, err := e.Container(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestRemove(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	if _, err := e.Create(t.Context(), ContainerSpec{Name: "a", Image: "i"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Remove(t.Context(), "a", 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if f.requests[len(f.requests)-3].URL.Query().Get("t") != "2" {
		t.Errorf("stop: %s", f.requests[len(f.requests)-3].URL)
	}
	if err := e.Remove(t.Context(), "a", 0); err != nil {
		t.Errorf("gone: %v", err)
	}
	if err := e.RemoveVolume(t.Context(), "gone", "io.spark-stack.test"); err != nil {
		t.Errorf("volume gone: %v", err)
	}
	f.answer["GET /volumes/theirs"] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"Name": "theirs", "Labels": map[string]string{"keep": "1"}})
	}
	if err := e.RemoveVolume(t.Context(), "theirs", "io.spark-stack.test"); !errors.Is(err, ErrUnlabelled) || f.seen(http.MethodDelete, "/volumes/theirs") > 0 {
		t.Errorf("volume of another: %v", err)
	}
	if err := e.RemoveVolume(t.Context(), "theirs", "keep"); f.seen(http.MethodDelete, "/volumes/theirs") != 1 {
		t.Errorf("labelled volume: %v", err)
	}
	id, err := e.Create(t.Context(), ContainerSpec{Name: "a", Image: "i"})
	if err != nil {
		t.Fatal(err)
	}
	inProgress := func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusConflict, "removal of container a is already in progress")
	}
	f.answer["DELETE /containers/"+id] = func(w http.ResponseWriter, r *http.Request) {
		time.AfterFunc(50*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.containers, id)
		})
		inProgress(w, r)
	}
	if err := e.Remove(t.Context(), "a", 0); err != nil {
		t.Errorf("in progress: %v", err)
	}
	id, err = e.Create(t.Context(), ContainerSpec{Name: "a", Image: "i"})
	if err != nil {
		t.Fatal(err)
	}
	f.answer["DELETE /containers/"+id] = inProgress
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = e.Remove(ctx, "a", 0)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "already in progress") {
		t.Errorf("stuck: %v", err)
	}
}

func TestExec(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	f.answer["POST /containers/c/exec"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]string{"Id": "e1"}) }
	hijack := func(talk func(net.Conn, http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			hijacker, ok := w.(http.Hijacker)
			if !ok {
				t.Error("no hijacker")
				return
			}
			conn, _, err := hijacker.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			talk(conn, &connWriter{conn})
		}
	}
	f.answer["POST /exec/e1/start"] = hijack(func(conn net.Conn, w http.ResponseWriter) {
		frames(w, "out", "hel", "err", "warning\n", "out", "lo\n")
		_ = conn.Close()
	})
	var looks atomic.Int32
	f.answer["GET /exec/e1/json"] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"ID": "e1", "Running": looks.Add(1) == 1, "ExitCode": 3})
	}
	result, err := e.Exec(t.Context(), "c", []string{"sh", "-c", "secret"})
	if difference := cmp.Diff(ExecResult{ExitCode: 3, Stdout: "hello\n", Stderr: "warning\n"}, result); err != nil || difference != "" {
		t.Error(err, difference)
	}
	f.answer["POST /exec/e1/start"] = hijack(func(conn net.Conn, _ http.ResponseWriter) {
		t.Cleanup(func() { _ = conn.Close() })
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Exec(ctx, "c", []string{"sleep", "secret"}); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") {
		t.Errorf("cancelled: %v", err)
	}
	f.answer["POST /containers/c/exec"] = func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusConflict, "container c is not running")
	}
	if _, err := e.Exec(t.Context(), "c", []string{"x"}); kindOf(err) != Failed || !strings.Contains(err.Error(), "not running") {
		t.Errorf("stopped: %v", err)
	}
}

// connWriter lets frames write to a connection.
type connWriter struct{ net.Conn }

func (c *connWriter) Header() http.Header { return nil }
func (c *connWriter) WriteHeader(int)     {}

func TestLogs(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	f.answer["GET /containers/c/logs"] = func(w http.ResponseWriter, r *http.Request) {
		if tail := r.URL.Query().Get("tail"); tail != "5" {
			t.Errorf("tail %q", tail)
		}
		frames(w, "out", "one\n", "err", "two\n", "out", "three\n")
	}
	if text, err := e.Logs(t.Context(), "c", 5); err != nil || text != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", text, err)
	}
	f.answer["GET /containers/c/logs"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "raw\n") }
	if text, err := e.Logs(t.Context(), "c", 5); err != nil || text != "raw\n" {
		t.Errorf("terminal: %q, %v", text, err)
	}
	f.answer["GET /containers/c/logs"] = func(w http.ResponseWriter, _ *http.Request) {
		line := strings.Repeat("x", 1023) + "\n"
		for range 1000 {
			frames(w, "out", line)
		}
		frames(w, "out", "the end")
	}
	text, err := e.Logs(t.Context(), "c", 0)
	if err != nil || len(text) > maxLogs || len(text) < maxLogs-2000 || !strings.HasSuffix(text, "the end") || !strings.HasPrefix(text, strings.Repeat("x", 1023)+"\n") {
		t.Errorf("long: %d bytes, %v", len(text), err)
	}
}

func TestImage(t *testing.T) {
	f := startFake(t)
	e := f.engine(t)
	f.answer["GET /images/example/ray:1/json"] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"Id": "sha256:1", "RepoTags": []string{"example/ray:1"}, "RepoDigests": []string{"example/ray@sha256:2"},
			"Architecture": "arm64", "Size": 20_000_000_000, "Config": map[string]any{"Env": []string{"PATH=/bin", "VLLM_HOST_IP=1.2.3.4"}},
		})
	}
	image, err := e.Image(t.Context(), "example/ray:1")
	want := Image{
		ID: "sha256:1", Architecture: "arm64",
		Env: map[string]string{"PATH": "/bin", "VLLM_HOST_IP": "1.2.3.4"},
	}
	if difference := cmp.Diff(want, image); err != nil || difference != "" {
		t.Error(err, difference)
	}
	if _, err := e.Image(t.Context(), "absent"); !errors.Is(err, ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
}

func TestCapsOfOutput(t *testing.T) {
	var b bounded
	b.limit = 4
	if _, err := b.Write([]byte("12345")); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	end := &ending{limit: 8}
	_, _ = io.Copy(end, bytes.NewBufferString("first line\nab\ncd\n"))
	if end.String() != "ab\ncd\n" {
		t.Errorf("%q", end.String())
	}
}
