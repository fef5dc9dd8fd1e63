package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/delay"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

const (
	// floorPoll is the pause between two questions of the floor.
	floorPoll = 100 * time.Millisecond
	// floorLimit bounds the floor's start; a busy machine needs minutes.
	floorLimit = 5 * time.Minute
	// applyLimit leaves ten of fifteen minutes to the other figures.
	applyLimit = 5 * time.Minute
)

// apply is the way from nothing but images and weights to the first answer.
func (b *bench) apply() contest {
	return contest{
		id: idApply, unit: seconds, samples: b.options.rounds, limit: applyLimit,
		value: side{
			name: "terraform apply", sample: b.fresh(b.deploy, nil),
			what: "terraform apply of cluster and deployment to the first completion; images, weights and agent are on both nodes; no added delay",
		},
		baseline: side{
			name: "by hand", sample: b.twice(b.fresh(b.byHand(), b.removeByHand)),
			what: "a shell script over OpenSSH in the manner of run_cluster.sh and the playbooks: docker run of Ray, ray status every 2 s, docker exec of vllm serve, curl of /health every 2 s, one completion; without any check and without the blind sleeps of the originals",
		},
		floor: side{
			name: "containers at once", sample: b.fresh(b.startAtOnce, b.removeByHand),
			what: "the same three containers started in the right order over open connections, each as soon as a question every 0.1 s is answered, to the first completion: what Ray and vLLM need themselves",
		},
	}
}

// fresh runs an act on nodes without any of our containers, and cleans up behind it; clean is nil where
// what was made is to stay. What failed is left to the end of the run.
func (b *bench) fresh(act, clean func(context.Context) error) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		if err := b.takeDown(ctx); err != nil {
			return 0, err
		}
		if err := b.readImage(ctx); err != nil {
			return 0, err
		}
		took, err := timed(act)(ctx)
		if err != nil || clean == nil {
			return took, err
		}
		return took, clean(ctx)
	}
}

// readImage reads the image's files once, as on a node that has served from it before: else the first
// side would read them from the disk for all others. The lab's nodes share these files.
func (b *bench) readImage(ctx context.Context) error {
	if b.imageRead {
		return nil
	}
	b.say("reading the image's files")
	_, err := b.ssh(ctx, 0, "docker run --rm --network none --entrypoint sh "+b.lab.Images.VLLM+" -c 'tar -C / --one-file-system -cf - . | wc -c'")
	b.imageRead = err == nil
	return err
}

// deploy applies, unless that is done.
func (b *bench) deploy(ctx context.Context) error {
	if b.deployed {
		return nil
	}
	if err := b.real.must(ctx, "apply", "-input=false", "-auto-approve"); err != nil {
		return err
	}
	b.deployed = true
	return nil
}

// takeDown destroys cluster and deployment; the nodes stay.
func (b *bench) takeDown(ctx context.Context) error {
	if !b.deployed {
		return nil
	}
	b.deployed = false
	return b.real.must(ctx, "destroy", "-input=false", "-auto-approve", "-target=ray_cluster.pair")
}

// removeByHand removes what the floor or the baseline started.
func (b *bench) removeByHand(ctx context.Context) error {
	var failures []error
	for i := range b.nodes {
		failures = append(failures, b.remove(ctx, i, handContainers(), ourVolumes(floorName)))
	}
	return errors.Join(failures...)
}

// startAtOnce starts cluster and server with as little as possible around them.
func (b *bench) startAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, floorLimit, fmt.Errorf("the containers did not serve within %s", floorLimit))
	defer cancel()
	facts, err := b.nodes[0].Facts(ctx)
	if err != nil {
		return err
	}
	served := b.served(b.cluster(floorName))
	server, err := vllm.ContainerSpec(served, vllm.Node{Facts: facts})
	if err != nil {
		return err
	}
	if err := b.startRayAtOnce(ctx); err != nil {
		return err
	}
	client := vllm.NewClient(b.nodes[0].HTTP(), served.Listen())
	return b.runThenAsk(ctx, 0, server, func(ctx context.Context) error {
		_, err := client.Complete(ctx, served.ServedName, "Hello", 1)
		return err
	})
}

// runThenAsk starts a container and asks until the answer is nil.
func (b *bench) runThenAsk(ctx context.Context, node int, container engine.ContainerSpec, question func(context.Context) error) error {
	client, err := b.nodes[node].Engine(ctx)
	if err != nil {
		return err
	}
	id, err := client.Create(ctx, container)
	if err != nil {
		return err
	}
	if err := client.Start(ctx, id); err != nil {
		return err
	}
	for {
		answer := question(ctx)
		if answer == nil {
			return nil
		}
		if delay.Pause(ctx, floorPoll) != nil {
			return fmt.Errorf("container %s: %w: %w", container.Name, context.Cause(ctx), answer)
		}
	}
}

// cluster is the configuration's, under a name.
func (b *bench) cluster(name string) ray.Spec {
	spec := ray.Spec{Name: name, Image: b.lab.Images.VLLM, Port: gcsPort, WeightsDir: b.home}
	for i, node := range b.lab.Nodes {
		role := ray.Worker
		if i == 0 {
			role = ray.Head
		}
		spec.Members = append(spec.Members, ray.Member{Host: b.address(i), Name: node.Name, Role: role, Address: node.Fabric, GPUs: 1})
	}
	return spec
}

// served is the configuration's deployment on a cluster.
func (b *bench) served(cluster ray.Spec) vllm.Spec {
	reference := vllm.ClusterRef{Name: cluster.Name, Image: cluster.Image, Address: ray.Address(cluster), GPUTotal: len(cluster.Members), WeightsDir: cluster.WeightsDir}
	for _, member := range cluster.Members {
		reference.Members = append(reference.Members, vllm.Member{Host: member.Host, Name: member.Name, Role: member.Role, Address: member.Address})
	}
	return vllm.Spec{
		Name: cluster.Name, Cluster: reference, Source: weights.Source{Path: b.model()}, Image: cluster.Image, ServedName: name,
		TensorParallel: len(cluster.Members), Port: servePort, Args: []string{"--enforce-eager", "--max-model-len", "512"},
	}
}

// facts are those of both nodes, by host.
func (b *bench) facts(ctx context.Context) (map[string]agent.Facts, error) {
	all := map[string]agent.Facts{}
	for i, node := range b.nodes {
		one, err := node.Facts(ctx)
		if err != nil {
			return nil, err
		}
		all[b.address(i)] = one
	}
	return all, nil
}

// configuration are the values of the template.
func (b *bench) configuration() any {
	type node struct {
		Host, Key string
		Port      int
	}
	values := struct {
		Nodes                      []node
		Name, Image, Models, Model string
		GCSPort, ServePort         int
	}{Name: name, Image: b.lab.Images.VLLM, Models: b.home, Model: b.model(), GCSPort: gcsPort, ServePort: servePort}
	for i := range b.nodes {
		values.Nodes = append(values.Nodes, node{Host: b.address(i), Port: b.proxies[i].Port(), Key: b.keys[i]})
	}
	return values
}
