package vllmdeployment

import (
	"context"
	"errors"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/vllm"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// seen is a deployment as the nodes have it.
type seen struct {
	server vllm.Server
	// session is what the cluster's containers make now.
	session  string
	manifest weights.Manifest
	weights  map[string]weights.State
}

// lines are the drift sentences.
func (s seen) lines(spec vllm.Spec) []string {
	return append(vllm.Lines(vllm.Want(spec), s.server, s.session), weights.Lines(s.manifest, s.weights)...)
}

// complete says that every node holds the whole manifest.
func (s seen) complete() bool {
	for _, state := range s.weights {
		if state.Condition != weights.Complete {
			return false
		}
	}
	return true
}

// look reads server, weights and session; depth is how much of the weights. Without an accepted manifest the first node that holds a
// whole model decides what the model is.
func look(ctx context.Context, deployment opened, manifest weights.Manifest, depth weights.Depth) (seen, error) {
	found, err := vllm.Look(ctx, deployment.spec, manifest, deployment.machines)
	if err != nil {
		return seen{}, err
	}
	hosts, err := vllm.Hosts(ctx, deployment.spec, deployment.machines)
	if err != nil {
		return seen{}, err
	}
	if len(manifest.Files) == 0 {
		if manifest, err = choose(hosts, found, manifest.Renews); err != nil {
			return seen{}, err
		}
	}
	manifest, listings, err := weights.Prove(ctx, manifest, hosts, found.Listings, depth)
	if err != nil {
		return seen{}, err
	}
	out := seen{server: found.Server, manifest: manifest, weights: map[string]weights.State{}}
	for host, listing := range listings {
		out.weights[host] = weights.Compare(manifest, listing)
	}
	out.session, err = ray.SessionNow(ctx, deployment.spec.Cluster.Name, deployment.machines)
	return out, err
}

// choose takes the manifest from the first node, the head before the others, that has a whole model; what it
// renews comes last.
func choose(hosts []weights.Host, found vllm.Seen, renews []agent.File) (weights.Manifest, error) {
	var order []string
	for _, host := range hosts {
		order = append(order, host.Machine.Host())
	}
	manifest, _, problems := weights.Discover(order, hosts[0].Place.Below, found.Listings, renews)
	if len(problems) > 0 && len(manifest.Files) == 0 {
		var all []error
		for i := range problems {
			all = append(all, &problems[i])
		}
		return manifest, errors.Join(all...)
	}
	return manifest, nil
}

// discover looks for the model before there is a manifest, or for the one that renews it.
func discover(ctx context.Context, deployment opened, renews []agent.File) (weights.Manifest, error) {
	found, err := vllm.Look(ctx, deployment.spec, weights.Manifest{}, deployment.machines)
	if err != nil {
		return weights.Manifest{}, err
	}
	hosts, err := vllm.Hosts(ctx, deployment.spec, deployment.machines)
	if err != nil {
		return weights.Manifest{}, err
	}
	return choose(hosts, found, renews)
}

// unseen stands in when the last look failed: nothing is claimed to be there.
func unseen(deployment opened, manifest weights.Manifest) seen {
	out := seen{manifest: manifest, weights: map[string]weights.State{}}
	out.server = vllm.Server{Host: deployment.spec.Cluster.Head().Host, Container: "missing"}
	for _, member := range deployment.spec.Cluster.Members {
		out.weights[member.Host] = weights.State{Condition: weights.Missing}
	}
	return out
}

// cluster is the declared cluster as the gate needs it.
func (o opened) cluster() ray.Spec {
	spec := ray.Spec{Name: o.spec.Cluster.Name, Image: o.spec.Cluster.Image, Port: o.gcsPort}
	for _, member := range o.spec.Cluster.Members {
		spec.Members = append(spec.Members, ray.Member{
			Host: member.Host, Name: member.Name, Role: member.Role, Address: member.Address, GPUs: o.gpus[member.Host],
		})
	}
	return spec
}

// checkImage proves that every node has the server's image.
func checkImage(ctx context.Context, deployment opened) error {
	spec := deployment.cluster()
	spec.Image = deployment.spec.Image
	return ray.CheckImage(ctx, spec, deployment.machines)
}

// reconcile brings the weights to every node, then starts the server if it must. It returns the
// manifest with the digests that copies proved, and whether the server was touched.
func reconcile(ctx context.Context, deployment opened, manifest weights.Manifest, restart bool) (accepted weights.Manifest, started bool, err error) {
	tracker := track(ctx, deployment.spec.Name)
	defer func() { tracker.End(err) }()
	hosts, err := vllm.Hosts(ctx, deployment.spec, deployment.machines)
	if err != nil {
		return manifest, false, err
	}
	manifest, err = weights.Stage(ctx, manifest, hosts, tracker.copies)
	if err != nil || !restart {
		return manifest, false, err
	}
	if deployment.spec.StartLimit == 0 {
		deployment.spec.StartLimit = vllm.LoadLimit(manifest.Bytes())
	}
	return manifest, true, vllm.Start(ctx, deployment.spec, deployment.key, deployment.machines, deployment.hooks(), tracker.phase)
}

// hooks are the questions to Ray that the server's life depends on.
func (o opened) hooks() vllm.Cluster {
	return vllm.Cluster{
		Gate:      func(ctx context.Context) error { return ray.CheckMembers(ctx, o.cluster(), o.machines, true) },
		Alive:     func(ctx context.Context) error { return ray.CheckMembers(ctx, o.cluster(), o.machines, false) },
		Addresses: func(ctx context.Context) ([]string, error) { return ray.Addresses(ctx, o.cluster(), o.machines) },
	}
}

// stop removes the server and unfinished copies; weights stay. GPUs that Ray does not give back in
// time are no reason to fail: the next start waits for them again.
func stop(ctx context.Context, deployment opened) (warning string, err error) {
	released := func(ctx context.Context) error {
		return ray.CheckReleased(ctx, deployment.cluster(), deployment.machines)
	}
	late, err := vllm.Stop(ctx, deployment.spec, deployment.machines, released)
	if late != nil {
		warning = late.Error()
	}
	return warning, err
}
