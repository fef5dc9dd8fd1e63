//go:build lab

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lab is the world of simulated Sparks with real Docker, Ray and vLLM.
type lab struct {
	info struct {
		User           string `json:"user"`
		PrivateKeyFile string `json:"private_key_file"`
		KnownHostsFile string `json:"known_hosts_file"`
		Images         struct {
			Ray  string `json:"ray"`
			VLLM string `json:"vllm"`
		} `json:"images"`
		ModelPath string `json:"model_path"`
		Nodes     []struct {
			Name              string `json:"name"`
			ManagementAddress string `json:"management_address"`
			FabricAddress     string `json:"fabric_address"`
		} `json:"nodes"`
	}
	size modelSize
	// serves says that there will be a deployment; else the small image with Ray alone does.
	serves bool
	// before is what was on the nodes when the test began.
	before map[string]bool
}

const labName = "acceptance"

// newLab takes over the nodes of the running lab: whole, without containers of ours, without the
// helper, and with the model on the first node only.
func newLab(t testing.TB, serves bool) *lab {
	t.Helper()
	w := &lab{serves: serves, before: map[string]bool{}}
	if err := json.Unmarshal([]byte(w.run(t, nil, "info")), &w.info); err != nil {
		t.Fatalf("lab/info: %v", err)
	}
	w.heal(t)
	if others := w.containers(t); len(others) > 0 {
		t.Fatalf("the lab serves something already: %v; destroy that first", others)
	}
	for i := range w.info.Nodes {
		w.exec(t, i, "rm", "-rf", "/home/"+w.info.User+"/.cache/spark-stack")
		if i > 0 {
			w.exec(t, i, "rm", "-rf", w.modelPath())
		}
	}
	for line := range strings.Lines(w.exec(t, a, "find", w.modelPath(), "-type", "f", "-printf", `%s %f\n`)) {
		bytes, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		size, err := strconv.ParseInt(bytes, 10, 64)
		if err != nil {
			t.Fatalf("measure the model: %q", line)
		}
		w.size.Files++
		w.size.Bytes += size
		if strings.Contains(name, "-00002-of-") {
			w.size.ShardBytes = size
		}
	}
	for _, line := range w.everything(t) {
		w.before[line] = true
	}
	t.Cleanup(func() { w.heal(t) })
	return w
}

// run runs a command of the lab.
func (w *lab) run(t testing.TB, input []byte, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(repository, "lab", name), args...)
	if t.Context().Err() != nil { // in a cleanup
		command = exec.Command(command.Path, args...) //nolint:noctx // the test's context has ended by then
	}
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("lab/%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// exec runs a command as root on a node.
func (w *lab) exec(t testing.TB, node int, args ...string) string {
	t.Helper()
	return w.run(t, nil, "exec", append([]string{strconv.Itoa(node + 1)}, args...)...)
}

func (w *lab) nodes() []machine {
	var all []machine
	for i, one := range w.info.Nodes {
		network := one.FabricAddress[:strings.LastIndex(one.FabricAddress, ".")]
		all = append(all, machine{Name: one.Name, Host: one.ManagementAddress, Fabric: one.FabricAddress, Moved: fmt.Sprintf("%s.%d", network, 22+i)})
	}
	return all
}

func (w *lab) env() map[string]string {
	return map[string]string{
		"SPARK_SSH_USER": w.info.User, "SPARK_SSH_PRIVATE_KEY_FILE": w.info.PrivateKeyFile, "SPARK_SSH_KNOWN_HOSTS_FILE": w.info.KnownHostsFile,
	}
}

func (w *lab) names() (cluster, deployment string) { return labName, labName }
func (w *lab) exact() bool                         { return false }
func (w *lab) weightsDir() string                  { return filepath.Dir(w.info.ModelPath) }
func (w *lab) modelPath() string                   { return w.info.ModelPath }
func (w *lab) model() modelSize                    { return w.size }
func (w *lab) serveArgs() []string                 { return []string{"--enforce-eager", "--max-model-len", "512"} }

func (w *lab) image() string {
	if w.serves {
		return w.info.Images.VLLM
	}
	return w.info.Images.Ray
}

func (w *lab) fault(t testing.TB, name string, node int) {
	t.Helper()
	number := strconv.Itoa(node + 1)
	switch {
	case w.handFault(t, name, node):
	case name == "ray-recreated":
		w.again(t, node, func() { w.rerun(t, node) })
	case name == "ray-env" && node != a:
		w.again(t, node, func() { w.run(t, nil, "fault", name, number) })
	case name == "ray-head-management":
		w.run(t, nil, "fault", name)
	case name == "reboot":
		w.run(t, nil, "fault", name, number)
		w.awaitSSH(t, node)
	default:
		w.run(t, nil, "fault", name, number)
	}
}

// alive are the nodes that Ray's GCS has as alive: id to address.
func (w *lab) alive(t testing.TB) map[string]string {
	t.Helper()
	const script = `
from ray._raylet import GcsClient
for node in GcsClient(address="127.0.0.1:6379").get_all_node_info(timeout=5).values():
    if node.state == 0:
        print(node.node_id.hex(), node.node_manager_address)
`
	all := map[string]string{}
	for line := range strings.Lines(w.run(t, []byte(script), "exec", "1", "docker", "exec", "-i", "ray-"+labName, "python3", "-")) {
		id, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[id] = address
	}
	return all
}

// again runs a worker's container again by a fault, and waits until it is a member: until then a look
// would find one node less, or the earlier one.
func (w *lab) again(t testing.TB, node int, rerun func()) {
	t.Helper()
	before := w.alive(t)
	rerun()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		for id, address := range w.alive(t) {
			if _, old := before[id]; !old && address == w.nodes()[node].Fabric {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not join the cluster again", w.nodes()[node].Name)
		}
	}
}

// awaitSSH waits until somebody can log in.
func (w *lab) awaitSSH(t testing.TB, node int) {
	t.Helper()
	address := net.JoinHostPort(w.nodes()[node].Host, "22")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd of %s does not come back: %v", w.nodes()[node].Name, err)
		}
	}
}

func (w *lab) heal(t testing.TB) {
	t.Helper()
	w.run(t, nil, "heal")
	for i := range w.nodes() {
		w.awaitSSH(t, i)
	}
}

func (w *lab) containers(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i, one := range w.nodes() {
		list := w.exec(t, i, "docker", "ps", "-a", "--no-trunc", "--filter", "label=io.spark-stack.spark.resource", "--format", "{{.Names}} {{.ID}}")
		for line := range strings.Lines(list) {
			name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[one.Name+"/"+name] = id
		}
	}
	return all
}

// files are those below the home and the temporary folders of every node, without the model's.
func (w *lab) files(t testing.TB) []string {
	t.Helper()
	var all []string
	for i, one := range w.nodes() {
		list := w.exec(t, i, "find", "/home/"+w.info.User, "/tmp", "/var/tmp", "-xdev", "-path", w.modelPath(), "-prune", "-o", "-type", "f", "-print")
		for line := range strings.Lines(list) {
			all = append(all, one.Name+": file "+strings.TrimSpace(line))
		}
		for line := range strings.Lines(w.exec(t, i, "find", "/home/"+w.info.User, "-path", w.weightsDir()+"/*", "-name", ".*")) {
			all = append(all, one.Name+": unfinished copy "+strings.TrimSpace(line))
		}
	}
	return all
}

// everything is what a provider could leave behind.
func (w *lab) everything(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(w.containers(t))) {
		all = append(all, "container "+name)
	}
	for i, one := range w.nodes() {
		for what, command := range map[string][]string{
			"volume":  {"docker", "volume", "ls", "-q"},
			"network": {"docker", "network", "ls", "--filter", "type=custom", "--format", "{{.Name}}"},
			"process": {"sh", "-c", "pgrep -af 'spark-agent|raylet|gcs_server|vllm|ray::' | grep -v pgrep || true"},
		} {
			for line := range strings.Lines(w.exec(t, i, command...)) {
				all = append(all, one.Name+": "+what+" "+strings.TrimSpace(line))
			}
		}
	}
	return append(all, w.files(t)...)
}

// leftovers gives processes a moment to end.
func (w *lab) leftovers(t testing.TB) []string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		left := slices.DeleteFunc(w.everything(t), func(line string) bool { return w.before[line] })
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}
