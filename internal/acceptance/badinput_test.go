package acceptance

import (
	"fmt"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// mistake is a configuration or a node that cannot work. The plan fails, and nothing was changed.
type mistake struct {
	name string
	edit func(*config)
	// break and mend change the fleet around the plan.
	breakIt, mend func(f *hosttest.Fleet)
	env           map[string]string
	// says is the summary, where it points, and the decisive words of the detail.
	says []string
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	for _, one := range mistakes(w) {
		t.Run(one.name, func(t *testing.T) { one.make(t, w) })
	}
}

func (m mistake) make(t *testing.T, w *memory) {
	declared := config{node: map[int]string{}, host: map[int]string{}}
	if m.edit != nil {
		m.edit(&declared)
	}
	env := w.env()
	for name, value := range m.env {
		env[name] = value
	}
	s := stage{w: w, ws: clitest.New(t, declared.in(w), env)}
	if m.breakIt != nil {
		m.breakIt(w.fleet)
		defer m.mend(w.fleet)
	}
	w.fleet.ResetJournal()
	s.says(t, "plan", s.ws.PlanFails(), m.says)
	if changes := w.fleet.Journal(); len(changes) > 0 {
		t.Errorf("a failed plan changed %v", changes)
	}
}

func node(number int, text string) func(*config) {
	return func(c *config) { c.node[number] = text }
}
func cluster(text string) func(*config)    { return func(c *config) { c.cluster = text } }
func deployment(text string) func(*config) { return func(c *config) { c.deployment = text } }

// at is where an error points.
func at(address string) string { return "with " + address + ", on main.tf line" }

func mistakes(w *memory) []mistake {
	return append(append(connectionMistakes(w), declarationMistakes()...), nodeMistakes(w)...)
}

// connectionMistakes are nodes that cannot be reached or do not let us work.
func connectionMistakes(w *memory) []mistake {
	const plan = "Error: Unable to plan spark_node $b.host"
	onB := func(act func(*hosttest.Host)) func(*hosttest.Fleet) {
		return func(f *hosttest.Fleet) { act(f.Host(b)) }
	}
	wrongKey := func(f *hosttest.Fleet) { f.Host(b).DenyUser(true) }
	return []mistake{
		{name: "unknown host", edit: func(c *config) { c.host[b] = `"aurora-9.invalid"` },
			says: []string{"Error: Unable to plan spark_node aurora-9.invalid", at("spark_node.b"), "aurora-9.invalid"}},
		{name: "closed port", edit: node(b, "port = 1"), says: []string{plan, at("spark_node.b"), "refused"}},
		{name: "wrong key", breakIt: wrongKey, mend: onB(func(h *hosttest.Host) { h.DenyUser(false) }),
			says: []string{plan, at("spark_node.b"), hosttest.User}},
		{name: "wrong user", edit: node(b, `user = "nobody"`), says: []string{plan, at("spark_node.b"), "nobody"}},
		{name: "changed host key", breakIt: onB((*hosttest.Host).ChangeHostKey), mend: (*hosttest.Fleet).TrustHostKeys,
			says: []string{plan, at("spark_node.b"), "SHA256:"}},
		{name: "unknown host key", env: map[string]string{"SPARK_SSH_KNOWN_HOSTS_FILE": "/dev/null"},
			says: []string{plan, at("spark_node.b"), "SHA256:", "known_hosts"}},
		{name: "pinned host key that is another", edit: node(b, `host_key = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"`),
			says: []string{plan, at("spark_node.b"), "SHA256:"}},
		{name: "engine down", breakIt: onB(func(h *hosttest.Host) { h.EngineDown(true) }), mend: onB(func(h *hosttest.Host) { h.EngineDown(false) }),
			says: []string{plan, at("spark_node.b"), "systemctl start docker"}},
		{name: "no permission on the socket", breakIt: onB(func(h *hosttest.Host) { h.DenySocket(true) }), mend: onB(func(h *hosttest.Host) { h.DenySocket(false) }),
			says: []string{plan, at("spark_node.b"), "docker group"}},
		{name: "forwarding forbidden", breakIt: onB(func(h *hosttest.Host) { h.ForbidForwarding(true) }), mend: onB(func(h *hosttest.Host) { h.ForbidForwarding(false) }),
			says: []string{plan, at("spark_node.b"), "AllowStreamLocalForwarding"}},
	}
}

// declarationMistakes can be told from the configuration.
func declarationMistakes() []mistake {
	list := []mistake{
		{name: "same host twice", edit: func(c *config) { c.workers = "[spark_node.a]" },
			says: []string{"Error: Host is a member twice", at("ray_cluster.pair"), "$a.host"}},
		{name: "two nodes with one fabric address",
			breakIt: func(f *hosttest.Fleet) { f.Host(b).SetFabricAddress(f.Host(a).FabricAddress()) },
			mend:    func(f *hosttest.Fleet) { f.Host(b).SetFabricAddress("127.0.100.12") },
			says:    []string{"Error: Two nodes with one identity address", at("ray_cluster.pair"), "$a.name and $b.name both have the identity address $a.fabric"}},
		{name: "fabric address not on the node", edit: node(b, `fabric_address = "127.0.100.99"`),
			says: []string{"Error: Host $b.name ($b.host): fabric address is $b.fabric, not 127.0.100.99", at("spark_node.b"), `fabric_address = "$b.fabric"`}},
		{name: "more GPUs than the node has", edit: node(b, "gpu_count = 2"),
			says: []string{"Error: Host $b.name ($b.host): 1 of 2 GPUs present", at("spark_node.b")}},
		{name: "identity variable of the cluster", edit: cluster(`env = { VLLM_HOST_IP = "1.2.3.4" }`),
			says: []string{"Error: Managed variable in env", at("ray_cluster.pair"), "VLLM_HOST_IP"}},
		{name: "identity variable of the deployment", edit: deployment(`env = { NCCL_SOCKET_IFNAME = "eth0" }`),
			says: []string{"Error: NCCL_SOCKET_IFNAME is set by the provider", at("vllm_deployment.tiny")}},
		{name: "more tensor parallel ranks than GPUs", edit: deployment("tensor_parallel_size = 4"),
			says: []string{"Error: 4 GPUs needed, the cluster will have 2", at("vllm_deployment.tiny"), "tensor_parallel_size = 4"}},
		{name: "model outside the weights folder", edit: func(c *config) { c.model = `{ path = "/srv/tiny" }` },
			says: []string{at("vllm_deployment.tiny"), "/srv/tiny", "$weights_dir"}},
		{name: "branch instead of a commit", edit: func(c *config) { c.model = `{ repo = "org/tiny", revision = "main" }` },
			says: []string{at("vllm_deployment.tiny"), "main", "commit"}},
		{name: "managed argument of Ray", edit: cluster(`args = ["--node-ip-address=1.2.3.4"]`),
			says: []string{"Error: Managed argument in args", at("ray_cluster.pair"), "--node-ip-address"}},
		{name: "key as an argument", edit: deployment(`args = ["--api-key", "x"]`),
			says: []string{"Error: --api-key does not belong in args", at("vllm_deployment.tiny"), "Use api_key"}},
		{name: "port of Ray for the server", edit: deployment("port = 6379"),
			says: []string{"Error: Port 6379 is the cluster's own", at("vllm_deployment.tiny")}},
	}
	for _, arg := range []string{"--tensor-parallel-size=4", "-tp4", "--port=1", "--model=x", "--served-model-name=x", "--distributed-executor-backend=mp"} {
		list = append(list, mistake{name: "reserved argument " + arg, edit: deployment(fmt.Sprintf("args = [%q]", arg)),
			says: []string{"does not belong in args", at("vllm_deployment.tiny"), "args = ["}})
	}
	return list
}

// nodeMistakes are things that lie on the nodes or do not.
func nodeMistakes(w *memory) []mistake {
	one := func(number int, act func(*hosttest.Host)) func(*hosttest.Fleet) {
		return func(f *hosttest.Fleet) { act(f.Host(number)) }
	}
	image := func(h *hosttest.Host) { h.AddImage(hosttest.Image{Reference: hosttest.DefaultImage}) }
	index := w.modelPath() + "/model.safetensors.index.json"
	again := one(a, func(h *hosttest.Host) { h.WriteModel(w.modelPath()) })
	taken := func(port int) (breakIt, mend func(*hosttest.Fleet)) {
		return one(a, func(h *hosttest.Host) { h.TakePort(port) }), one(a, func(h *hosttest.Host) { h.FreePort(port) })
	}
	list := []mistake{
		{name: "image missing on one node", breakIt: one(b, func(h *hosttest.Host) { h.RemoveImage(hosttest.DefaultImage) }), mend: one(b, image),
			says: []string{"Error: Unable to plan ray_cluster spark", at("ray_cluster.pair"), "image =", "$b.host: inspect image $image: $b.name does not have the image", "Pull or load $image"}},
		{name: "different image ids", breakIt: one(b, func(h *hosttest.Host) {
			h.AddImage(hosttest.Image{Reference: hosttest.DefaultImage, ID: "sha256:" + fmt.Sprintf("%064d", 7)})
		}), mend: one(b, image),
			says: []string{"Error: Unable to plan ray_cluster spark", at("ray_cluster.pair"), "000000000000", "must be the same on every node"}},
		{name: "image of another architecture", breakIt: func(f *hosttest.Fleet) {
			for _, h := range f.Hosts() {
				h.AddImage(hosttest.Image{Reference: hosttest.DefaultImage, Architecture: "amd64"})
			}
		}, mend: func(f *hosttest.Fleet) { image(f.Host(a)); image(f.Host(b)) },
			says: []string{"Error: Unable to plan ray_cluster spark", at("ray_cluster.pair"), "amd64", "--platform linux/arm64"}},
		{name: "model folder missing", edit: func(c *config) { c.model = `{ path = "/models/other" }` },
			says: []string{"Error: Unable to plan vllm_deployment other", at("vllm_deployment.tiny"), "Model folder /models/other", "does not exist"}},
		{name: "model without its index", breakIt: one(a, func(h *hosttest.Host) { h.DeleteFile(index) }), mend: again,
			says: []string{"Error: Unable to plan vllm_deployment tiny", at("vllm_deployment.tiny"), "has no model.safetensors.index.json"}},
		{name: "model with a shard missing", breakIt: one(a, func(h *hosttest.Host) { h.DeleteFile(w.modelPath() + "/" + hosttest.ShardName(3)) }), mend: again,
			says: []string{"Error: Unable to plan vllm_deployment tiny", at("vllm_deployment.tiny"), "lacks 1 of 4 shards", hosttest.ShardName(3)}},
	}
	breakIt, mend := taken(6379)
	list = append(list, mistake{name: "port of Ray taken", breakIt: breakIt, mend: mend,
		says: []string{"Error: Unable to plan ray_cluster spark", at("ray_cluster.pair"), "6379", "ss -ltnp"}})
	breakIt = one(a, func(h *hosttest.Host) {
		h.RunContainer("vllm-tiny", hosttest.Spec{Image: hosttest.DefaultImage, Command: []string{"sleep", "1d"}})
	})
	mend = one(a, func(h *hosttest.Host) { h.RemoveContainer("vllm-tiny") })
	list = append(list, mistake{name: "name of vLLM's container taken", breakIt: breakIt, mend: mend,
		says: []string{"Error: Unable to plan vllm_deployment tiny", at("vllm_deployment.tiny"), "container vllm-tiny was not made by this provider", "docker rm -f vllm-tiny"}})
	breakIt, mend = taken(8000)
	return append(list, mistake{name: "port of vLLM taken", breakIt: breakIt, mend: mend,
		says: []string{"Error: Unable to plan vllm_deployment tiny", at("vllm_deployment.tiny"), "8000", "ss -ltnp"}})
}
