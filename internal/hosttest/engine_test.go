package hosttest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

func TestEngineVersions(t *testing.T) {
	f := NewFleet(t, 1)
	docker := engineOf(t, mustDial(t, f, 0))
	ping, err := docker.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
	if err != nil || ping.APIVersion != engineAPIVersion || docker.ClientVersion() != engineAPIVersion {
		t.Fatalf("ping: %+v, %v; client speaks %s", ping, err, docker.ClientVersion())
	}
	version, err := docker.ServerVersion(t.Context(), client.ServerVersionOptions{})
	if err != nil || version.Version != engineVersion {
		t.Errorf("version: %+v, %v", version, err)
	}
	info, err := docker.Info(t.Context(), client.InfoOptions{})
	if err != nil || info.Info.Name != "aurora-1" {
		t.Errorf("info: %+v, %v", info, err)
	}
}

func TestImages(t *testing.T) {
	f := NewFleet(t, 1)
	docker := engineOf(t, mustDial(t, f, 0))
	f.Host(0).AddImage(Image{Reference: "registry.example/own@sha256:" + strings.Repeat("1", 64), Env: map[string]string{"VLLM_HOST_IP": "10.0.0.1"}})
	seen, err := docker.ImageInspect(t.Context(), "registry.example/own@sha256:"+strings.Repeat("1", 64))
	if err != nil || seen.Architecture != "arm64" || !slices.Contains(seen.Config.Env, "VLLM_HOST_IP=10.0.0.1") {
		t.Errorf("image: %+v, %v", seen, err)
	}
	f.Host(0).RemoveImage(DefaultImage)
	if _, err := docker.ImageInspect(t.Context(), DefaultImage); !cerrdefs.IsNotFound(err) {
		t.Errorf("removed image: %v", err)
	}
}

func TestContainerLife(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)
	docker := engineOf(t, mustDial(t, f, 0))
	ctx := t.Context()
	create := func(name string, config *container.Config, host *container.HostConfig) (string, error) {
		config.Image = DefaultImage
		created, err := docker.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: name})
		return created.ID, err
	}
	id, err := create("base", &container.Config{Cmd: []string{"sleep", "infinity"}, Labels: map[string]string{"a": "b"}},
		&container.HostConfig{IpcMode: "shareable", NetworkMode: "host", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "v", Target: "/tmp/ray"}}})
	if err != nil || len(id) != 64 {
		t.Fatalf("create: %q, %v", id, err)
	}
	if _, err := create("base", &container.Config{}, nil); !cerrdefs.IsConflict(err) {
		t.Errorf("same name: %v", err)
	}
	_, err = create("bound", &container.Config{}, &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/nowhere", Target: "/x"}}})
	if !cerrdefs.IsInvalidArgument(err) {
		t.Errorf("missing bind source: %v", err)
	}
	if _, err := docker.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	joined, err := create("joined", &container.Config{Cmd: []string{"sleep", "infinity"}}, &container.HostConfig{IpcMode: "container:base", PidMode: "container:base"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := docker.ContainerStart(ctx, joined, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	seen, err := docker.ContainerInspect(ctx, "joined", client.ContainerInspectOptions{})
	if err != nil || string(seen.Container.HostConfig.PidMode) != "container:"+id || seen.Container.Name != "/joined" {
		t.Errorf("joined: %+v, %v", seen.Container.HostConfig, err)
	}
	if started, err := time.Parse(time.RFC3339Nano, seen.Container.State.StartedAt); err != nil || time.Since(started) > time.Minute {
		t.Errorf("started at %q, %v", seen.Container.State.StartedAt, err)
	}
	list, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "a=b")})
	if err != nil || len(list.Items) != 1 || list.Items[0].Names[0] != "/base" {
		t.Errorf("list by label: %+v, %v", list.Items, err)
	}
	list, err = docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("name", "^/join", "^/ba")})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list by name: %+v, %v", list.Items, err)
	}
	if _, err := docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{}); !cerrdefs.IsConflict(err) {
		t.Errorf("remove a running one: %v", err)
	}
	wait := docker.ContainerWait(ctx, joined, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	if _, err := docker.ContainerStop(ctx, id, client.ContainerStopOptions{}); err != nil {
		t.Error(err)
	}
	select {
	case result := <-wait.Result:
		if result.StatusCode != exitKilled {
			t.Errorf("joined ended with %d", result.StatusCode)
		}
	case err := <-wait.Error:
		t.Error(err)
	}
	if _, err := docker.ContainerStart(ctx, joined, client.ContainerStartOptions{}); err == nil {
		t.Error("a container without its namespace started")
	}
	if _, err := docker.VolumeRemove(ctx, "v", client.VolumeRemoveOptions{}); !cerrdefs.IsConflict(err) {
		t.Errorf("remove a volume in use: %v", err)
	}
	if _, err := docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := docker.VolumeRemove(ctx, "v", client.VolumeRemoveOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{}); !cerrdefs.IsNotFound(err) {
		t.Errorf("removed: %v", err)
	}
	h.RemoveContainer("joined")
	want := []string{
		"create base", "start base", "create joined", "start joined", "stop base", "start joined",
		"remove base", "remove volume v",
	}
	var got []string
	for _, entry := range f.Journal() {
		got = append(got, entry.Action+" "+entry.Target)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestExecAndLogs(t *testing.T) {
	f := NewFleet(t, 1)
	h := f.Host(0)
	docker := engineOf(t, mustDial(t, f, 0))
	ctx := t.Context()
	f.Answer(func(i Invocation) (Outcome, bool) {
		if i.Command[0] != "probe" {
			return Outcome{}, false
		}
		return Outcome{Stdout: "out\n", Stderr: "err\n", ExitCode: 3}, true
	})
	h.RunContainer("box", Spec{Image: DefaultImage, Command: []string{"sleep", "infinity"}})
	created, err := docker.ExecCreate(ctx, "box", client.ExecCreateOptions{Cmd: []string{"probe", "-x"}, AttachStdout: true, AttachStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	attached, err := docker.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer attached.Close()
	var stdout, stderr bytes.Buffer
	if _, err := stdcopy.StdCopy(&stdout, &stderr, attached.Reader); err != nil {
		t.Fatal(err)
	}
	result, err := docker.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
	if err != nil || result.ExitCode != 3 || stdout.String() != "out\n" || stderr.String() != "err\n" {
		t.Errorf("exec: %+v, %q, %q, %v", result, &stdout, &stderr, err)
	}

	h.RunContainer("once", Spec{Image: DefaultImage, Command: []string{"probe"}})
	stdout.Reset()
	logs, err := docker.ContainerLogs(ctx, "once", client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = logs.Close() }()
	stderr.Reset()
	if _, err := stdcopy.StdCopy(&stdout, &stderr, logs); err != nil || stdout.String() != "" || stderr.String() != "err\n" {
		t.Errorf("logs: %q, %q, %v", &stdout, &stderr, err)
	}
	if once, _ := h.Container("once"); once.Status != "exited" || once.ExitCode != 3 {
		t.Errorf("once: %+v", once)
	}
}
