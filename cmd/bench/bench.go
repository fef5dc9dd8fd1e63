package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/delay"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// files are the configuration and the baselines.
//
//go:embed files
var files embed.FS

// Names and ports of what is made on the nodes; none is a default of the product, so that nothing
// of a user's is met.
const (
	name      = "bench"       // of the cluster and the deployment that Terraform makes
	floorName = "bench-floor" // of those that the floor makes
	handName  = "ray-bench-hand"
	gcsPort   = 26390
	servePort = 28390
	// farDelay is one way: 20 ms a round trip, as between two cities of one country.
	farDelay = 10 * time.Millisecond
)

// bench is one run on the lab.
type bench struct {
	lab     lab
	options options
	stderr  io.Writer
	start   time.Time
	// dir is the work folder here, an absolute path; home is ours on every node.
	dir, home string
	// proxies lead to the nodes' sshd, nodes are the machines behind them; the head first.
	proxies []*delay.Proxy
	keys    []string
	pool    *fleet.Pool
	nodes   []fleet.Machine
	real    workspace
	idle    workspace
	// deployed says that the workspace's cluster and deployment are up.
	deployed bool
	// imageRead says that the image's files are in the page cache.
	imageRead bool
	// crowd is nil until many nodes are asked for.
	crowd *crowd
}

// say reports progress.
func (b *bench) say(format string, arguments ...any) {
	fmt.Fprintf(b.stderr, "[%4.0fs] %s\n", time.Since(b.start).Seconds(), fmt.Sprintf(format, arguments...))
}

// open finds the lab, and refuses one that is in use.
func open(ctx context.Context, chosen options, stderr io.Writer) (*bench, error) {
	found, err := readLab(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs("build/bench")
	if err != nil {
		return nil, err
	}
	b := &bench{lab: found, options: chosen, stderr: stderr, start: time.Now(), dir: dir, home: "/home/" + found.User + "/spark-bench"}
	b.pool = fleet.NewPool(fleet.Defaults{User: found.User, PrivateKeyFile: found.Key})
	for i, node := range found.Nodes {
		key, err := found.hostKey(node)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errStart, err)
		}
		proxy, err := delay.NewProxy(ctx, b.address(i), node.Management+":22")
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errStart, err)
		}
		b.keys = append(b.keys, key)
		b.proxies = append(b.proxies, proxy)
		b.nodes = append(b.nodes, b.pool.Machine(fleet.Connection{Host: b.address(i), Port: proxy.Port(), HostKey: key}))
	}
	if err := b.vacant(ctx); err != nil {
		b.shut()
		return nil, err
	}
	return b, nil
}

// address is where a node is reached here: one of its own for each, since hosts are keys.
func (b *bench) address(i int) string { return fmt.Sprintf("127.0.0.%d", 11+i) }

// vacant proves that every node answers and that nobody else's Ray or vLLM runs on it.
func (b *bench) vacant(ctx context.Context) error {
	for i, node := range b.nodes {
		containers, err := node.Containers(ctx)
		if err != nil {
			return fmt.Errorf("%w: node %s is not healthy: %w", errStart, b.lab.Nodes[i].Name, err)
		}
		for _, one := range containers {
			if one.Status == "running" && !slices.Contains(ourContainers(), one.Spec.Name) && !b.options.alongside {
				return fmt.Errorf("%w: %s runs %s, and figures are taken on an idle lab; remove it (make demo-down, or terraform destroy) or measure with -alongside",
					errStart, b.lab.Nodes[i].Name, one.Spec.Name)
			}
		}
	}
	return nil
}

// ourContainers are all that a run can leave behind, handContainers those of them that Terraform does not make.
func ourContainers() []string {
	return append([]string{agent.ServeNamePrefix + name, ray.ContainerName(name)}, handContainers()...)
}

func handContainers() []string {
	return []string{agent.ServeNamePrefix + floorName, ray.ContainerName(floorName), handName}
}

// ourVolumes are those of a cluster.
func ourVolumes(cluster string) []string {
	return []string{ray.VolumeName(cluster), ray.CacheName(cluster)}
}

// prepare lays out the work folder, the model on both nodes and the two Terraform workspaces.
func (b *bench) prepare(ctx context.Context) error {
	if err := os.RemoveAll(b.dir); err != nil {
		return err
	}
	if err := b.layOut(); err != nil {
		return err
	}
	if err := b.sweep(ctx); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	b.say("the model goes to both nodes")
	if _, err := b.ssh(ctx, 0, fmt.Sprintf("mkdir -p %s && cp -rL %s %s/", b.home, b.lab.ModelPath, b.home)); err != nil {
		return err
	}
	if err := b.stage(ctx, b.model()); err != nil {
		return err
	}
	b.say("terraform init, and the nodes")
	for _, one := range []workspace{b.idle, b.real} {
		if err := one.must(ctx, "init", "-input=false"); err != nil {
			return err
		}
	}
	// The nodes stay for the whole run: with them the agent, which is uploaded once.
	return b.real.must(ctx, "apply", "-input=false", "-auto-approve", "-target=spark_node.a", "-target=spark_node.b")
}

// model is the folder of the model that is served, on every node.
func (b *bench) model() string { return path.Join(b.home, path.Base(b.lab.ModelPath)) }

// layOut writes the work folder.
func (b *bench) layOut() error {
	rc, err := mirror(b.dir, b.options.provider)
	if err != nil {
		return err
	}
	environment := append(cleanEnvironment(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1",
		"SPARK_SSH_USER="+b.lab.User, "SPARK_SSH_PRIVATE_KEY_FILE="+b.lab.Key)
	b.real = workspace{dir: filepath.Join(b.dir, "two-sparks"), environment: environment}
	b.idle = workspace{dir: filepath.Join(b.dir, "idle"), environment: environment}
	if err := b.real.write(files, "files/two-sparks.tf.tmpl", b.configuration()); err != nil {
		return err
	}
	if err := b.idle.write(files, "files/idle.tf.tmpl", nil); err != nil {
		return err
	}
	for _, script := range []string{"checks.sh", "together.sh", "up.sh", "nodes.py"} {
		content, err := files.ReadFile("files/" + script)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.dir, script), content, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(b.sshConfig(), []byte(b.sshConfiguration()), 0o600)
}

func (b *bench) sshConfig() string { return filepath.Join(b.dir, "ssh_config") }

// sshConfiguration is what a careful person has in ~/.ssh/config: strict, and through the proxies.
func (b *bench) sshConfiguration() string {
	var text strings.Builder
	for i, node := range b.lab.Nodes {
		fmt.Fprintf(&text, "Host %s\n  HostName %s\n  Port %d\n  HostKeyAlias %s\n", node.Name, b.address(i), b.proxies[i].Port(), node.Management)
	}
	fmt.Fprintf(&text, "Host *\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n",
		b.lab.User, b.lab.Key, b.lab.KnownHosts)
	return text.String()
}

// ssh runs a command on a node with OpenSSH.
func (b *bench) ssh(ctx context.Context, node int, command string) (string, error) {
	return b.program(ctx, nil, "ssh", "-F", b.sshConfig(), b.lab.Nodes[node].Name, command)
}

// script runs one of the baselines, with what it needs to know in its environment.
func (b *bench) script(ctx context.Context, script string, arguments ...string) (string, error) {
	return b.program(ctx, b.scriptEnvironment(), "bash", append([]string{filepath.Join(b.dir, script)}, arguments...)...)
}

func (b *bench) scriptEnvironment() []string {
	head, worker := b.lab.Nodes[0], b.lab.Nodes[1]
	return append(os.Environ(),
		"SSH_CONFIG="+b.sshConfig(), "HEAD="+head.Name, "WORKER="+worker.Name, "HEAD_ADDRESS="+head.Fabric, "WORKER_ADDRESS="+worker.Fabric,
		"INTERFACE="+head.FabricInterface, "IMAGE="+b.lab.Images.VLLM, "MODEL="+b.model(), "MODELS="+b.home, "NAME="+name, "HAND="+handName,
		"GCS_PORT="+strconv.Itoa(gcsPort), "SERVE_PORT="+strconv.Itoa(servePort), "WANT="+filepath.Join(b.dir, "want"), "FILES="+b.dir)
}

// program runs a program; its failure carries the end of what it said.
func (b *bench) program(ctx context.Context, environment []string, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // the programs and their arguments are our own
	command.Env = environment
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, tail(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// stage brings a folder of the head to the other node.
func (b *bench) stage(ctx context.Context, folder string) error {
	helper, err := b.nodes[0].Agent(ctx)
	if err != nil {
		return err
	}
	listing, err := helper.List(ctx, agent.ListRequest{Folder: folder})
	if err != nil {
		return err
	}
	_, err = weights.Stage(ctx, weights.Manifest{Files: listing.Files}, b.hosts(folder), func(weights.Progress) {})
	return err
}

// hosts are both nodes as the weights see them.
func (b *bench) hosts(folder string) []weights.Host {
	var all []weights.Host
	for i, node := range b.nodes {
		all = append(all, weights.Host{Machine: node, Address: b.lab.Nodes[i].Fabric, Place: weights.Place{Folder: folder, ServePath: folder}})
	}
	return all
}

// setDelay sets the delay of one direction to every node, for connections that are made from now on.
func (b *bench) setDelay(oneWay time.Duration) {
	for _, one := range b.proxies {
		one.SetDelay(oneWay)
	}
}

// close leaves the lab as it was found.
func (b *bench) close(ctx context.Context) error {
	defer b.shut()
	b.setDelay(0)
	b.say("cleaning up")
	var err error
	if b.real.initialized() {
		err = b.real.must(ctx, "destroy", "-input=false", "-auto-approve")
	}
	return errors.Join(err, b.sweep(ctx))
}

// sweep removes our containers, volumes and folders from both nodes.
func (b *bench) sweep(ctx context.Context) error {
	var failures []error
	for i := range b.nodes {
		failures = append(failures, b.remove(ctx, i, ourContainers(), append(ourVolumes(name), ourVolumes(floorName)...)))
	}
	if _, err := os.Stat(b.sshConfig()); err != nil {
		return errors.Join(append(failures, err)...) // nothing else was made
	}
	for i := range b.nodes {
		_, err := b.ssh(ctx, i, "rm -rf "+b.home+" "+copyFolder)
		failures = append(failures, err)
	}
	b.deployed = false
	return errors.Join(failures...)
}

// remove takes containers and volumes off a node; those that are gone are no error.
func (b *bench) remove(ctx context.Context, node int, containers, volumes []string) error {
	client, err := b.nodes[node].Engine(ctx)
	if err != nil {
		return err
	}
	defer b.nodes[node].Changed()
	var failures []error
	for _, one := range containers {
		failures = append(failures, client.Remove(ctx, one, time.Second))
	}
	for _, one := range volumes {
		failures = append(failures, client.RemoveVolume(ctx, one, fleet.LabelResource))
	}
	return errors.Join(failures...)
}

func (b *bench) shut() {
	b.pool.Close()
	if b.crowd != nil {
		b.crowd.fleet.Close()
	}
	for _, one := range b.proxies {
		_ = one.Close() // it ends with the program anyway
	}
}

// tail is the last part of a long text.
func tail(text string) string {
	const longest = 2000
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return "…" + text[len(text)-longest:]
	}
	return text
}
