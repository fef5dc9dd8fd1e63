package acceptance

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

// memory is the world of the in-process fleet.
type memory struct {
	fleet *hosttest.Fleet
	size  modelSize
}

// newMemory starts n hosts; the model lies on the first.
func newMemory(t testing.TB, n int, options ...hosttest.Option) *memory {
	t.Helper()
	w := &memory{fleet: hosttest.NewFleet(t, n, append([]hosttest.Option{hosttest.WithTiming(hosttest.InstantTiming())}, options...)...)}
	w.fleet.WriteModel(0, w.modelPath())
	w.measure(t)
	return w
}

// measure counts the model.
func (w *memory) measure(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir(w.fleet.Host(0).Path(w.modelPath()), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		w.size.Files++
		w.size.Bytes += info.Size()
		if filepath.Base(path) == hosttest.ShardName(2) {
			w.size.ShardBytes = info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatalf("measure the model: %v", err)
	}
}

func (w *memory) nodes() []machine {
	var all []machine
	for i, host := range w.fleet.Hosts() {
		all = append(all, machine{
			Name: host.Name(), Host: host.Address(),
			Fabric: fmt.Sprintf("127.0.100.%d", 11+i), Moved: fmt.Sprintf("127.0.100.%d", 111+i),
		})
	}
	return all
}

func (w *memory) env() map[string]string {
	return map[string]string{
		"SPARK_SSH_USER": hosttest.User, "SPARK_SSH_PORT": strconv.Itoa(w.fleet.Port()),
		"SPARK_SSH_PRIVATE_KEY_FILE": w.fleet.PrivateKeyFile(), "SPARK_SSH_KNOWN_HOSTS_FILE": w.fleet.KnownHosts(),
	}
}

func (w *memory) names() (cluster, deployment string) { return "", "" }
func (w *memory) exact() bool                         { return true }

func (w *memory) image() string       { return hosttest.DefaultImage }
func (w *memory) weightsDir() string  { return "/models" }
func (w *memory) modelPath() string   { return "/models/tiny" }
func (w *memory) model() modelSize    { return w.size }
func (w *memory) serveArgs() []string { return []string{"--enforce-eager"} }

// containerOf is the host's container of a kind ("ray-" or "vllm-").
func (w *memory) containerOf(t testing.TB, node int, prefix string) string {
	t.Helper()
	for _, container := range w.fleet.Host(node).Containers() {
		if strings.HasPrefix(container.Name, prefix) {
			return container.Name
		}
	}
	t.Fatalf("%s has no container %s…", w.fleet.Host(node).Name(), prefix)
	return ""
}

func (w *memory) fault(t testing.TB, name string, node int) {
	t.Helper()
	host := w.fleet.Host(node)
	shard := w.modelPath() + "/" + hosttest.ShardName(2)
	switch name {
	case "fabric-address":
		host.SetFabricAddress(w.nodes()[node].Moved)
	case "gpu-lost":
		host.SetGPUs(0)
	case "ray-stopped":
		host.StopContainer(w.containerOf(t, node, "ray-"))
	case "ray-removed":
		host.RemoveContainer(w.containerOf(t, node, "ray-"))
	case "ray-env":
		host.RerunContainer(w.containerOf(t, node, "ray-"), func(spec *hosttest.Spec) { spec.Env["NCCL_DEBUG"] = "INFO" })
	case "ray-recreated":
		host.RerunContainer(w.containerOf(t, node, "ray-"), func(*hosttest.Spec) {})
	case "ray-image":
		w.addImage("registry.example/by-hand:1", "")
		host.RerunContainer(w.containerOf(t, node, "ray-"), func(spec *hosttest.Spec) { spec.Image = "registry.example/by-hand:1" })
	case "ray-without-gpus":
		host.RerunContainer(w.containerOf(t, node, "ray-"), func(spec *hosttest.Spec) {
			spec.Drop("--num-gpus")
			spec.Command = append(spec.Command, "--num-gpus=0")
		})
	case "ray-management":
		host.RerunContainer(w.containerOf(t, node, "ray-"), func(spec *hosttest.Spec) {
			spec.Drop("--node-ip-address")
			spec.Command = append(spec.Command, "--node-ip-address="+host.Address())
			spec.Env["VLLM_HOST_IP"] = host.Address()
		})
	case "ray-head-management":
		w.headByManagement(t)
	case "vllm-killed":
		host.KillContainer(w.containerOf(t, node, "vllm-"))
	case "vllm-removed":
		host.RemoveContainer(w.containerOf(t, node, "vllm-"))
	case "weights-truncated":
		host.TruncateFile(shard, 1000)
	case "weights-deleted":
		host.DeleteFile(shard)
	case "reboot":
		host.Reboot()
	case "unreachable":
		host.PowerOff()
	case "sshd-stopped":
		host.StopSSH()
	default:
		t.Fatalf("no fault %q in this world", name)
	}
}

// headByManagement runs the head again as somebody does by hand, and the workers behind it.
func (w *memory) headByManagement(t testing.TB) {
	t.Helper()
	name := w.containerOf(t, 0, "ray-")
	var workers []*hosttest.Host
	for _, host := range w.fleet.Hosts()[1:] {
		if _, exists := host.Container(name); exists {
			host.StopContainer(name)
			workers = append(workers, host)
		}
	}
	w.fleet.Host(0).RerunContainer(name, func(spec *hosttest.Spec) {
		if !spec.Drop("--node-ip-address") {
			t.Fatalf("%s was not started with --node-ip-address: %q", name, spec.Command)
		}
	})
	for _, host := range workers {
		host.RerunContainer(name, func(*hosttest.Spec) {})
	}
}

func (w *memory) heal(t testing.TB) {
	t.Helper()
	for i, host := range w.fleet.Hosts() {
		host.SetFabricAddress(w.nodes()[i].Fabric)
		host.SetGPUs(1)
		host.PowerOn()
	}
}

func (w *memory) containers(testing.TB) map[string]string {
	all := map[string]string{}
	for _, host := range w.fleet.Hosts() {
		for _, container := range host.Containers() {
			all[host.Name()+"/"+container.Name] = container.ID
		}
	}
	return all
}

func (w *memory) leftovers(t testing.TB) []string {
	t.Helper()
	all := []string{}
	for _, host := range w.fleet.Hosts() {
		for _, container := range host.Containers() {
			all = append(all, host.Name()+": container "+container.Name)
		}
		for _, volume := range host.Volumes() {
			all = append(all, host.Name()+": volume "+volume)
		}
		err := filepath.WalkDir(host.Root(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == host.Root() {
				return err
			}
			name := "/" + strings.TrimPrefix(path, host.Root()+"/")
			if name == w.weightsDir() {
				return fs.SkipDir
			}
			if !entry.IsDir() {
				all = append(all, host.Name()+": file "+name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// Weights stay, unfinished copies do not.
		unfinished, err := filepath.Glob(host.Path(w.modelPath()) + "/.*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range unfinished {
			all = append(all, host.Name()+": unfinished copy "+filepath.Base(path))
		}
	}
	return all
}

// journal are all changes of the provider on the nodes so far.
func (w *memory) journal() []string {
	var lines []string
	for _, entry := range w.fleet.Journal() {
		lines = append(lines, entry.String())
	}
	return lines
}

// addImage puts an image on every host; an empty id is made from the reference.
func (w *memory) addImage(reference, id string) {
	for _, host := range w.fleet.Hosts() {
		host.AddImage(hosttest.Image{Reference: reference, ID: id})
	}
}

// has says whether a host has a container.
func (w *memory) has(node int, container string) bool {
	_, found := w.fleet.Host(node).Container(container)
	return found
}
