package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecDifferences(t *testing.T) {
	const id = "3f2a000000000000000000000000000000000000000000000000000000000000"
	names := map[string]string{id: "/ray-pair"}
	tests := []struct {
		name   string
		change func(want, seen *ContainerSpec)
		expect []string
	}{
		{"same", func(_, _ *ContainerSpec) {}, nil},
		{"image, command and environment are others' business", func(_, seen *ContainerSpec) {
			seen.Image, seen.Command, seen.Env = "other", nil, nil
		}, nil},
		{"more than we asked", func(_, seen *ContainerSpec) {
			seen.CapAdd = append(seen.CapAdd, "SYS_NICE")
			seen.Devices = append(seen.Devices, "/dev/fuse")
			seen.Mounts = append(seen.Mounts, Mount{Source: "/x", Target: "/x"})
		}, nil},
		{"left to the engine", func(want, seen *ContainerSpec) {
			want.NetworkMode, want.IPCMode, want.PIDMode, want.SharedMemory = "", "", "", 0
			seen.NetworkMode, seen.IPCMode, seen.SharedMemory = "bridge", "private", 1<<30
		}, nil},
		{"container by id", func(want, seen *ContainerSpec) {
			want.IPCMode, want.PIDMode = "container:ray-pair", "container:ray-pair"
			seen.IPCMode, seen.PIDMode = "container:"+id, "container:"+id
		}, nil},
		{"container that is gone", func(want, seen *ContainerSpec) {
			want.IPCMode, seen.IPCMode = "container:ray-pair", "container:dead"
		}, []string{"IPC mode is container:dead, not container:ray-pair"}},
		{"namespaces", func(_, seen *ContainerSpec) {
			seen.NetworkMode, seen.IPCMode, seen.PIDMode = "bridge", "private", ""
		}, []string{"network mode is bridge, not host", "IPC mode is private, not shareable", "PID mode is not set, not host"}},
		{"shared memory", func(_, seen *ContainerSpec) { seen.SharedMemory = 0 },
			[]string{"shared memory is 67108864 bytes, not 10737418240"}},
		{"default shared memory, said out loud", func(want, seen *ContainerSpec) { want.SharedMemory, seen.SharedMemory = 64<<20, 0 }, nil},
		{"mounts", func(_, seen *ContainerSpec) {
			seen.Mounts = []Mount{{Source: "/models", Target: "/models"}}
		}, []string{"at /models is mounted folder /models, not folder /models (read-only)", "nothing is mounted at /tmp/ray (want volume ray-pair-tmp)"}},
		{"hardware", func(_, seen *ContainerSpec) {
			seen.AllGPUs, seen.UnlimitedMemlock, seen.CapAdd, seen.Devices = false, false, nil, []string{"/dev/infiniband/rdma_cm"}
		}, []string{
			"device /dev/infiniband/uverbs0 is not passed through", "capability IPC_LOCK is not added",
			"the GPUs are not requested", "locked memory is limited",
		}},
		{"GPUs that were not wanted", func(want, _ *ContainerSpec) { want.AllGPUs = false }, []string{"the GPUs are requested"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want, seen := fullSpec(), fullSpec()
			test.change(&want, &seen)
			if difference := cmp.Diff(test.expect, SpecDifferences(want, seen, names)); difference != "" {
				t.Error(difference)
			}
		})
	}
}

func TestBound(t *testing.T) {
	tests := map[string]Mount{
		"/models:/m:ro,Z":  {Source: "/models", Target: "/m", ReadOnly: true},
		"/models:/m":       {Source: "/models", Target: "/m"},
		"cache:/root/x:rw": {Source: "cache", Target: "/root/x", Volume: true},
	}
	for text, want := range tests {
		if got, ok := bound(text); !ok || got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if _, ok := bound("/anonymous"); ok {
		t.Error("an anonymous volume has no source")
	}
}
