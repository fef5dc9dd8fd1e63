package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// clusterLimit bounds the figure: a turn takes about half a minute.
const clusterLimit = 150 * time.Second

// clusterUp is the way from nothing but images to a cluster that has passed the gate.
func (b *bench) clusterUp() contest {
	return contest{
		id: idCluster, unit: seconds, samples: b.options.rounds, limit: clusterLimit,
		value: side{
			name: "terraform apply",
			sample: b.fresh(func(ctx context.Context) error {
				return b.real.must(ctx, "apply", "-input=false", "-auto-approve", "-target=ray_cluster.pair")
			}, func(ctx context.Context) error {
				return b.real.must(ctx, "destroy", "-input=false", "-auto-approve", "-target=ray_cluster.pair")
			}),
			what: "terraform apply of the cluster alone, to the gate that is passed; images and agent are on both nodes; no added delay",
		},
		baseline: side{
			name: "by hand", sample: b.twice(b.fresh(b.byHand("ray"), b.removeByHand)),
			what: "the same nodes by hand: docker run of ray start on the head, then on the worker, over OpenSSH, and ray status every 2 s until both are there",
		},
		floor: side{
			name: "containers at once", sample: b.fresh(b.startRayAtOnce, b.removeByHand),
			what: "the same two containers started in the right order over open connections, each as soon as a question every 0.1 s is answered: what Ray needs itself",
		},
	}
}

// byHand is the script of the baseline.
func (b *bench) byHand(arguments ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := b.script(ctx, "up.sh", arguments...)
		return err
	}
}

// twice takes a sample of the baseline again if it failed: nobody looks after what is made by hand, and a
// worker that did not join would end the whole run. The time of the failure does not count against it.
func (b *bench) twice(sample func(context.Context) (float64, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		took, err := sample(ctx)
		if err == nil || ctx.Err() != nil {
			return took, err
		}
		b.say("by hand, once more, since it failed: %v", err)
		if err := b.removeByHand(ctx); err != nil {
			return 0, err
		}
		return sample(ctx)
	}
}

// startRayAtOnce starts the floor's cluster with as little as possible around it.
func (b *bench) startRayAtOnce(ctx context.Context) error {
	cluster := b.cluster(floorName)
	var containers []engine.ContainerSpec
	for i, member := range cluster.Members {
		facts, err := b.nodes[i].Facts(ctx)
		if err != nil {
			return err
		}
		one, err := ray.ContainerSpec(cluster, member, facts)
		if err != nil {
			return err
		}
		containers = append(containers, one)
	}
	question := gcs.New(b.nodes[0].HTTP(), ray.Address(cluster), gcs.Credential{})
	for i, container := range containers {
		err := b.runThenAsk(ctx, i, container, func(ctx context.Context) error {
			found, err := question.Status(ctx)
			if err == nil && len(found.Alive()) <= i {
				err = fmt.Errorf("%d of %d Ray nodes are alive", len(found.Alive()), i+1)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
