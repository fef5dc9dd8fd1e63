package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// gateSamples are many: each takes about a second, nearly all of it the baselines'.
const gateSamples = 9

// gate is the question who belongs to the cluster, by which address, with which GPUs and placement
// groups. Every side has its SSH connection already.
func (b *bench) gate() contest {
	inside := func(command ...string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			client, err := b.ready(ctx)
			if err != nil {
				return 0, err
			}
			return timed(func(ctx context.Context) error {
				result, err := client.Exec(ctx, ray.ContainerName(name), command)
				if err == nil && result.ExitCode != 0 {
					err = fmt.Errorf("exit code %d: %s", result.ExitCode, tail(result.Stderr))
				}
				return err
			})(ctx)
		}
	}
	python, err := files.ReadFile("files/nodes.py")
	if err != nil {
		panic(err) // it is embedded
	}
	open := &openQuestion{b: b}
	return contest{
		id: idGate, unit: seconds, samples: gateSamples,
		value: side{
			name: "identity gate", sample: b.askGate,
			what: "the provider's gate between Ray and vLLM, in full: a connection to the GCS through SSH, node table, free resources and placement groups by raw gRPC, and the judgement; no added delay",
		},
		baseline: side{
			name: "python3 in the container", sample: inside("python3", "-c", string(python)),
			what: "docker exec of python3 with ray.init, ray.nodes() and placement_group_table(), the API that vLLM itself uses, over the open connection",
		},
		floor: side{
			name: "one round trip", sample: open.sample,
			what: "the same three questions on a connection to the GCS that is open already",
		},
		also: []side{{
			name: "ray status", sample: inside("ray", "status"),
			what: "docker exec of ray status over the open connection; it tells no addresses",
		}},
	}
}

// ready has the deployment up and the head connected.
func (b *bench) ready(ctx context.Context) (engine.Engine, error) {
	if err := b.deploy(ctx); err != nil {
		return nil, err
	}
	client, err := b.nodes[0].Engine(ctx)
	if err != nil {
		return nil, err
	}
	_, err = client.Version(ctx)
	return client, err
}

// askGate is the gate as the provider asks it. A server runs, so its GPUs are taken: that and its
// placement group are found and expected, and nothing else.
func (b *bench) askGate(ctx context.Context) (float64, error) {
	if _, err := b.ready(ctx); err != nil {
		return 0, err
	}
	facts, err := b.facts(ctx)
	if err != nil {
		return 0, err
	}
	cluster := b.cluster(name)
	var findings []ray.Finding
	took, err := timed(func(ctx context.Context) error {
		found, err := ray.Ask(ctx, cluster, b.nodes[0])
		findings = ray.Gate(ray.Want(cluster), found, facts)
		return err
	})(ctx)
	if err != nil {
		return 0, err
	}
	for _, one := range findings {
		if one.Fault != ray.Busy && one.Fault != ray.LeftOver {
			return 0, errors.New(one.Sentence)
		}
	}
	return took, nil
}

// openQuestion keeps its connection to the GCS.
type openQuestion struct {
	b      *bench
	client *gcs.Client
}

func (q *openQuestion) sample(ctx context.Context) (float64, error) {
	if _, err := q.b.ready(ctx); err != nil {
		return 0, err
	}
	ask := func(ctx context.Context) error {
		_, err := q.client.Status(ctx)
		return err
	}
	if q.client == nil {
		credential, err := ray.Credential(ctx, q.b.cluster(name), q.b.nodes[0])
		if err != nil {
			return 0, err
		}
		q.client = gcs.New(q.b.nodes[0].HTTP(), ray.Address(q.b.cluster(name)), credential)
		if err := ask(ctx); err != nil {
			return 0, err
		}
	}
	return timed(ask)(ctx)
}
