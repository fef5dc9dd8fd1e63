package ray

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// SharedMemory is the size of /dev/shm in bytes, 10 GiB: the object store (1 GiB) and the buffers of
// NCCL and of vLLM's ranks live there, and Docker's 64 MiB end them with SIGBUS. It is a limit and
// takes no memory by itself.
const SharedMemory = 10 << 30

// TempDir is Ray's own folder in its containers.
const TempDir = "/tmp/ray"

// CacheDir is root's cache folder in the containers, where vLLM, torch and FlashInfer keep what they
// compile. Triton's own is beside it and is moved in. What an image brings there is copied into a new
// volume by the engine.
const CacheDir = "/root/.cache"

const tritonCache = "TRITON_CACHE_DIR"

// infiniband is the folder of the RDMA devices.
const infiniband = "/dev/infiniband"

// defaults are variables that a user may set otherwise. Ray's memory monitor kills at 95 % of the
// host's memory, which on GB10 holds the weights; idle prestarted workers take memory for nothing.
func defaults() map[string]string {
	return map[string]string{
		"RAY_memory_monitor_refresh_ms":   "0",
		"RAY_num_prestart_python_workers": "0",
		tritonCache:                       CacheDir + "/triton",
	}
}

// ContainerSpec is the container of one member on the node whose facts are given. It fails if the
// node cannot be known by the member's identity address.
func ContainerSpec(spec Spec, member Member, facts agent.Facts) (engine.ContainerSpec, error) {
	cluster := Address(spec)
	if cluster == "" {
		return engine.ContainerSpec{}, fmt.Errorf("the head of cluster %s has no identity address", spec.Name)
	}
	id, err := identity.Resolve(facts, member.Address)
	if err != nil {
		return engine.ContainerSpec{}, err
	}
	env := defaults()
	maps.Copy(env, spec.Env)
	maps.Copy(env, authEnv(spec))
	maps.Copy(env, id.Env(cluster)) // Last: nothing may overrule the identity.
	container := engine.ContainerSpec{
		Name: ContainerName(spec.Name), Image: spec.Image,
		Entrypoint: []string{}, Command: Command(spec, member), Env: env,
		Mounts: []engine.Mount{
			{Source: VolumeName(spec.Name), Target: TempDir, Volume: true},
			{Source: CacheName(spec.Name), Target: CacheDir, Volume: true},
		},
		NetworkMode: "host", IPCMode: "shareable", SharedMemory: SharedMemory,
		AllGPUs: member.GPUs > 0,
	}
	if spec.WeightsDir != "" {
		dir := WeightsPath(spec.WeightsDir, facts)
		container.Mounts = append(container.Mounts, engine.Mount{Source: dir, Target: dir, ReadOnly: true})
	}
	if spec.Authentication == AuthToken {
		container.Mounts = append(container.Mounts, SecretMount(spec.Name, facts))
	}
	if len(facts.RDMA) > 0 {
		// All three, or RDMA fails on this node only: the devices, and the right to pin memory.
		container.Devices = []string{infiniband}
		container.CapAdd = []string{"IPC_LOCK"}
		container.UnlimitedMemlock = true
	}
	container.Labels = map[string]string{
		fleet.LabelResource: resource, fleet.LabelName: spec.Name, fleet.LabelRole: string(member.Role),
	}
	container.Labels[LabelDeclared] = declaration(spec)
	return container, nil
}

// The values of fleet.LabelResource.
const (
	resource       = "ray_cluster"
	serverResource = "vllm_deployment"
)

// WeightsPath is the absolute folder on the node: "~/" is the login user's home.
func WeightsPath(dir string, facts agent.Facts) string {
	if rest, home := strings.CutPrefix(dir, "~/"); home {
		return path.Join(facts.User.Home, rest)
	}
	return path.Clean(dir)
}

// ours says whether the container was made by the provider for this cluster.
func ours(spec Spec, container engine.Container) bool {
	return container.Spec.Labels[fleet.LabelResource] == resource && container.Spec.Labels[fleet.LabelName] == spec.Name
}

// find returns the cluster's container among a node's.
func find(spec Spec, containers []engine.Container) (engine.Container, bool) {
	at := slices.IndexFunc(containers, func(one engine.Container) bool { return one.Spec.Name == ContainerName(spec.Name) })
	if at < 0 {
		return engine.Container{}, false
	}
	return containers[at], true
}

// servers returns the containers of servers that run on this cluster.
func servers(spec Spec, containers []engine.Container) []engine.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(one engine.Container) bool {
		return one.Spec.Labels[fleet.LabelResource] != serverResource || one.Spec.Labels[fleet.LabelCluster] != spec.Name
	})
}
