package vllm

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// sharedFolder is where Ray keeps its sockets. vLLM's own (VLLM_RPC_BASE_PATH, /tmp by default) must
// be there too: the rank beside the server runs in the Ray container.
const sharedFolder = ray.TempDir

// rayAuth begins the variables of Ray's token authentication.
const rayAuth = "RAY_AUTH_"

// ServeCommand is the whole `vllm serve` line. Ray is always the backend, also for one GPU, so that
// the rank runs in the Ray container, which is what has the RDMA devices and the shared memory.
func ServeCommand(spec Spec) []string {
	command := []string{"vllm", "serve", spec.servePath(), "--served-model-name", spec.served()}
	if _, bound := flagValue(spec.Args, "--host"); !bound {
		command = append(command, "--host", spec.bound())
	}
	command = append(command, "--port", strconv.Itoa(spec.port()), "--tensor-parallel-size", strconv.Itoa(max(spec.TensorParallel, 1)),
		"--distributed-executor-backend", "ray")
	return slices.Concat(command, spec.Options.arguments(), spec.replicas(), spec.single(), spec.Args)
}

// servePath is the model's path on the head; while the head's home is unknown it keeps its "~/". A
// source that cannot be placed gives an empty path: Check says why.
func (s Spec) servePath() string {
	place, err := weights.Location(s.Source, s.Cluster.WeightsDir, s.Cluster.Head().Home)
	if err != nil {
		return ""
	}
	return place.ServePath
}

// overridable are variables that a user may set otherwise. The limits are in seconds: loading 100 GB
// takes longer than vLLM's own 600, and a first request that compiles longer than its 300.
func overridable() map[string]string {
	return map[string]string{
		"HF_HUB_OFFLINE":                     "1",
		"VLLM_NO_USAGE_STATS":                "1",
		"VLLM_ENGINE_READY_TIMEOUT_S":        "3600",
		"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1800",
	}
}

// carried says whether vLLM's Ray executor copies a managed variable from the server to every rank:
// NCCL_* and UCX_* overwrite the ranks' own in the older executor. The server needs none of them, so
// it has none, and no node gets another node's device names. That works in every version, where
// ray_non_carry_over_env_vars.json would need a file in the container. VLLM_HOST_IP is never copied.
func carried(name string) bool {
	return strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "UCX_")
}

// Node is what the head's node brings to the server.
type Node struct {
	Facts agent.Facts
	// ImageEnv is the environment baked into the image.
	ImageEnv map[string]string
	// RayEnv is the environment of the cluster's container there.
	RayEnv map[string]string
}

// managed is the server's part of its node's managed environment, and the cluster's token if Ray
// asks for one.
func managed(spec Spec, node Node) (map[string]string, error) {
	id, err := identity.Resolve(node.Facts, spec.Cluster.Head().Address)
	if err != nil {
		return nil, err
	}
	env := id.Env(spec.Cluster.Address)
	maps.DeleteFunc(env, func(name, _ string) bool { return carried(name) })
	for name, value := range node.RayEnv {
		if strings.HasPrefix(name, rayAuth) {
			env[name] = value
		}
	}
	for name := range ours() {
		env[name] = sharedFolder
	}
	return env, nil
}

// ContainerSpec is the server's container on the head. It fails with an [*identity.Error] or a
// [*weights.Problem].
func ContainerSpec(spec Spec, node Node) (engine.ContainerSpec, error) {
	home := node.Facts.User.Home
	spec = spec.withHome(spec.Cluster.Head().Host, home)
	if _, err := weights.Location(spec.Source, spec.Cluster.WeightsDir, home); err != nil {
		return engine.ContainerSpec{}, err
	}
	fixed, err := managed(spec, node)
	if err != nil {
		return engine.ContainerSpec{}, err
	}
	env := overridable()
	maps.Copy(env, spec.Env)
	maps.Copy(env, fixed) // Last: nothing may overrule the identity.
	folder := ray.WeightsPath(spec.Cluster.WeightsDir, node.Facts)
	container := engine.ContainerSpec{
		Name:       spec.ContainerName(),
		Image:      spec.image(),
		Entrypoint: []string{},
		Command:    slices.Concat(unset(node.ImageEnv, env), spec.keyed(), ServeCommand(spec)),
		Env:        env,
		Mounts: []engine.Mount{
			{Source: folder, Target: folder, ReadOnly: true},
			{Source: ray.VolumeName(spec.Cluster.Name), Target: sharedFolder, Volume: true},
			{Source: ray.CacheName(spec.Cluster.Name), Target: ray.CacheDir, Volume: true},
		},
		NetworkMode: "host",
		IPCMode:     "container:" + ray.ContainerName(spec.Cluster.Name),
		PIDMode:     "container:" + ray.ContainerName(spec.Cluster.Name),
		// The server itself only asks the driver what the platform is; the ranks compute elsewhere.
		AllGPUs: true,
		Labels: map[string]string{
			fleet.LabelResource: Resource, fleet.LabelName: spec.Name, fleet.LabelRole: RoleServer,
			fleet.LabelCluster: spec.Cluster.Name, LabelSession: spec.Cluster.Session,
		},
	}
	if spec.KeyVersion != 0 {
		container.Mounts = append(container.Mounts, spec.keyMount(node.Facts))
		container.Labels[LabelKeyVersion] = strconv.FormatInt(spec.KeyVersion, 10)
	}
	if node.RayEnv[rayAuth+"TOKEN_PATH"] == ray.TokenPath {
		container.Mounts = append(container.Mounts, ray.SecretMount(spec.Cluster.Name, node.Facts))
	}
	return container, nil
}

// unset takes variables out that an image brings along and that the ranks would inherit from the
// server: another cluster's device names. Docker cannot unset a variable, env(1) can. Most images
// bring none, and then the command is the `vllm serve` line alone.
func unset(imageEnv, env map[string]string) []string {
	var prefix []string
	for _, name := range identity.PerNode() {
		_, baked := imageEnv[name]
		_, replaced := env[name]
		if baked && !replaced {
			prefix = append(prefix, "-u", name)
		}
	}
	if len(prefix) == 0 {
		return nil
	}
	return append([]string{"env"}, prefix...)
}

// withHome is the spec with one member's home known.
func (s Spec) withHome(host, home string) Spec {
	s.Cluster.Members = slices.Clone(s.Cluster.Members)
	for i, member := range s.Cluster.Members {
		if member.Host == host {
			s.Cluster.Members[i].Home = home
		}
	}
	return s
}
