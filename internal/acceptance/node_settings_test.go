package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// hostKey is a node's public key as known_hosts has it.
func (w *memory) hostKey(t testing.TB, node int) string {
	t.Helper()
	content, err := os.ReadFile(w.fleet.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if address, key, _ := strings.Cut(strings.TrimSpace(line), " "); address == fmt.Sprintf("[%s]:%d", w.nodes()[node].Host, w.fleet.Port()) {
			return key
		}
	}
	t.Fatalf("known_hosts has no key of node %d", node)
	return ""
}

// connection are the lines of a spark_node that says itself how it is reached.
func (w *memory) connection(t testing.TB, node int) string {
	return fmt.Sprintf("user = %q\n  port = %d\n  private_key_file = %q\n  host_key = %q",
		hosttest.User, w.fleet.Port(), w.fleet.PrivateKeyFile(), w.hostKey(t, node))
}

// Nodes that say how they are reached need nothing of the provider, and their cluster and deployment
// reach them in the same way. A change of that alone touches no container.
func TestNodeSettings(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	own := config{node: map[int]string{a: w.connection(t, a), b: w.connection(t, b)}}
	s := stage{w: w, config: own, ws: clitest.New(t, own.in(w), map[string]string{"SPARK_SSH_CONFIG_FILE": "none", "SPARK_SSH_KNOWN_HOSTS_FILE": os.DevNull})}
	s.ws.Apply()
	before := w.fleet.Counters()
	s.ws.Empty()
	for i, after := range w.fleet.Counters() {
		if dialled := after.Connections - before[i].Connections; dialled != 1 {
			t.Errorf("%s: %d connections for one plan", w.nodes()[i].Name, dialled)
		}
	}
	s.with(t, func(c *config) {
		c.node[b] += "\n  docker_socket = \"/var/run/docker.sock\"\n  host_key_policy = \"strict\"\n  transport = \"ssh\"\n  agent_dir = \"~/.cache/own\"\n  unreachable = \"keep\"\n  timeouts = { read = \"1m\" }"
	})
	plan := s.ws.Drifted()
	var leaves strings.Builder
	for _, change := range []string{"agent_dir: null -> ~/.cache/own", "docker_socket: null -> /var/run/docker.sock", "host_key_policy: null -> strict", "transport: null -> ssh", "unreachable: null -> keep"} {
		for _, at := range []string{"spark_node.b ", "ray_cluster.pair nodes/$b.host/", "ray_cluster.pair workers/0/", "vllm_deployment.tiny cluster/nodes/$b.host/"} {
			leaves.WriteString(at + change + "\n")
		}
	}
	s.compare(t, "drift lines", "", plan.Lines())
	s.compare(t, "planned values", leaves.String()+"spark_node.b timeouts/read: null -> 1m", plan.Leaves())
	s.actions(t, plan, "ray_cluster.pair update, spark_node.b update, vllm_deployment.tiny update")
	unchanged := watch(t, w)
	s.ws.ApplyPlanned()
	unchanged()
	s.ws.Empty()
	s.ws.Destroy()
}

// What the provider's block says holds for all nodes, and nothing of a key is in the state or the plan.
func TestProviderKey(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 1)
	key, err := os.ReadFile(w.fleet.PrivateKeyFile())
	if err != nil {
		t.Fatal(err)
	}
	env := w.env()
	delete(env, "SPARK_SSH_PRIVATE_KEY_FILE")
	env["TF_VAR_key"] = string(key)
	nodes := config{count: 1, nodesOnly: true, before: "variable \"key\" {\n  sensitive = true\n}", provider: "private_key = var.key\n  passphrase = null\n  ssh_config_file = \"none\""}
	ws := clitest.New(t, nodes.in(w), env)
	ws.Drifted()
	var planned map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ws.Run("show", "-json", "planned").Stdout), &planned); err != nil {
		t.Fatal(err)
	}
	ws.ApplyPlanned()
	ws.Empty()
	body := strings.Split(string(key), "\n")[1]
	for what, text := range map[string]string{"state": ws.Run("state", "pull").Stdout, "plan": string(planned["resource_changes"]) + string(planned["planned_values"])} {
		if strings.Contains(text, body) || !strings.Contains(text, w.nodes()[a].Host) {
			t.Errorf("the %s has the private key, or no node: %s", what, text)
		}
	}
	inEnv := w.env()
	delete(inEnv, "SPARK_SSH_PRIVATE_KEY_FILE")
	inEnv["SPARK_SSH_PRIVATE_KEY"] = string(key)
	clitest.New(t, config{count: 1, nodesOnly: true}.in(w), inEnv).Drifted()
	ws.Destroy()
}

// settingMistakes are bad values of how a node is reached, and of what a node is.
func settingMistakes() []mistake {
	list := []mistake{}
	for _, line := range []string{`user = ""`, `user = "-oProxyCommand=x"`, "port = 0", "port = 65536", `private_key_file = ""`, `certificate_file = ""`, `host_key = ""`,
		`host_key_policy = "maybe"`, "proxy_jump = []", `proxy_jump = ["gate:x"]`, `proxy_jump = ["-oProxyCommand=x"]`, `transport = "telnet"`,
		`docker_socket = "docker.sock"`, `agent_dir = "bin"`, `unreachable = "forget"`, `ignore_drift = []`, `ignore_drift = ["weather"]`, `ignore_drift = ["machine"]`, `fabric_address = "192.168.200"`, "gpu_count = -1"} {
		name, _, _ := strings.Cut(line, " ")
		list = append(list, mistake{name: "node: " + line, edit: node(b, line), says: []string{"Error: Invalid", at("spark_node.b"), line}})
		if name == "fabric_address" {
			list[len(list)-1].says[0] = "Error: Not an IPv4 address"
		}
	}
	// Nothing in a list is not less of it: a gate that is null would be no gate.
	for line, says := range map[string]string{"proxy_jump = [null]": "Null List Value", `proxy_jump = ["gate", null]`: "Null List Value", "ignore_drift = [null]": "Null Set Value"} {
		list = append(list, mistake{name: "node: " + line, edit: node(b, line), says: []string{says, at("spark_node.b"), line}})
	}
	for line, says := range map[string]string{"args = [null]": "Null List Value", "env = { NCCL_DEBUG = null }": "Null Map Value"} {
		list = append(list, mistake{name: "cluster: " + line, edit: cluster(line), says: []string{says, at("ray_cluster.pair"), line}},
			mistake{name: "deployment: " + line, edit: deployment(line), says: []string{says, at("vllm_deployment.tiny"), line}})
	}
	for _, host := range []string{`""`, `"aurora@aurora-1"`, `"aurora-1:22"`, `"[::1]"`, `"-x"`} {
		list = append(list, mistake{name: "host = " + host, edit: func(c *config) { c.host[b] = host }, says: []string{"Error: Not a host", at("spark_node.b"), "User and port have attributes of their own"}})
	}
	for _, line := range []string{`user = "two words"`, "port = 0", `host_key_policy = "maybe"`, "proxy_jump = []", `unreachable = "forget"`, `agent_dir = "bin"`, `private_key = ""`} {
		list = append(list, mistake{name: "provider: " + line, edit: func(c *config) { c.provider = line }, says: []string{"Error: Invalid", `with provider["registry.terraform.io/spark-stack/spark"]`}})
	}
	for name, value := range map[string]string{"SPARK_SSH_PORT": "ssh", "SPARK_SSH_HOST_KEY_POLICY": "maybe", "SPARK_SSH_PROXY_JUMP": "a,,b", "SPARK_UNREACHABLE": "forget", "SPARK_DOCKER_SOCKET": "docker.sock"} {
		list = append(list, mistake{name: name, env: map[string]string{name: value}, says: []string{"Error: Unable to read " + name}})
	}
	return list
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	for _, one := range settingMistakes() {
		t.Run(one.name, func(t *testing.T) { one.make(t, w) })
	}
	if diff := cmp.Diff([]hosttest.Counters{{}, {}}, w.fleet.Counters()); diff != "" {
		t.Errorf("a value that cannot be right made somebody dial: %s", diff)
	}
}

// What only apply will know of a node is no error of the plan, whether the node is new or not.
func TestUnknownNodeSettings(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	delete(env, "SPARK_SSH_PORT")
	ws := clitest.New(t, "", env)
	for _, trigger := range []string{"1", "2"} {
		unknown := config{node: map[int]string{}, before: substitute(w, `
resource "terraform_data" "known_later" {
  input            = { user = "$user", port = $port, jump = "none", kind = "reachable", count = 1 }
  triggers_replace = `+trigger+`
}`)}
		for _, one := range []int{a, b} {
			unknown.node[one] = `user = terraform_data.known_later.output.user
  port = terraform_data.known_later.output.port
  proxy_jump = [terraform_data.known_later.output.jump]
  ignore_drift = [terraform_data.known_later.output.kind]
  gpu_count = terraform_data.known_later.output.count`
		}
		ws.Config(unknown.in(w))
		ws.Drifted()
		ws.ApplyPlanned()
		ws.Empty()
	}
	ws.Destroy()
}

// A connection that is not as safe as it could be is said once for each node, whatever asks there.
func TestConnectionWarning(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	env := w.env()
	env["SPARK_SSH_KNOWN_HOSTS_FILE"] = os.DevNull
	ws := clitest.New(t, config{provider: `host_key_policy = "off"`, clusterOnly: true}.in(w), env)
	ws.Apply()
	text := clitest.Unwrap(ws.Empty().Text())
	for _, one := range w.nodes() {
		if told := strings.Count(text, "Connection to "+one.Host); told != 1 {
			t.Errorf("%d warnings of the connection to %s: %s", told, one.Host, text)
		}
	}
	ws.Config(config{provider: `host_key_policy = "accept-new"`, clusterOnly: true}.in(w))
	if text := ws.Empty().Text(); strings.Contains(text, "Connection to ") {
		t.Errorf("accept-new warns: %s", text)
	}
	ws.Destroy()
}
