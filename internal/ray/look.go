package ray

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// Seen is a cluster as one look found it.
type Seen struct {
	// Nodes are the members by host, those without a container too.
	Nodes map[string]Node
	// Table is the GCS's answer; GCSError says why there is none. A dead GCS is something seen, and
	// no reason for the look to fail.
	Table    gcs.Table
	GCSError error
	// Facts are the members' by host.
	Facts map[string]agent.Facts
	// Foreign are the hosts whose container of the cluster's name is not the provider's.
	Foreign []string
}

// Gone says that every member was looked at and none has a container.
func (s Seen) Gone() bool {
	for _, node := range s.Nodes {
		if node.Container != missing {
			return false
		}
	}
	return true
}

// Look reads all members at once through their snapshots and asks the GCS, through the head's
// connection. It changes nothing. A host that cannot be read fails it with an [*Error] that names it
// (all of them, joined, if several cannot).
func Look(ctx context.Context, spec Spec, machines map[string]fleet.Machine) (Seen, error) {
	seen := Seen{Nodes: map[string]Node{}, Facts: map[string]agent.Facts{}}
	looks := map[string]look{}
	var mutex sync.Mutex
	err := onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		found, err := lookAt(ctx, spec, machine)
		mutex.Lock()
		defer mutex.Unlock()
		looks[member.Host], seen.Facts[member.Host] = found, found.facts
		return err
	})
	if err != nil {
		return Seen{}, err
	}
	// Snapshots are shared; these questions are not, and wait for each other's round trip no longer.
	var unread error
	var group sync.WaitGroup
	tokens := map[string]readOut{}
	group.Go(func() { tokens, unread = readTokens(ctx, spec, machines, looks) })
	seen.Table, seen.GCSError, err = askHead(ctx, spec, machines, looks)
	group.Wait()
	if err = errors.Join(err, unread); err != nil {
		return Seen{}, err
	}
	for host, one := range tokens {
		found := looks[host]
		found.token, found.hasToken = one.value, one.found
		looks[host] = found
	}
	byHost, strangers := owners(seen.Table.Alive(), seen.Facts)
	for _, member := range spec.Members {
		found := looks[member.Host]
		entry, isMember := entryOf(byHost[member.Host], member.Address)
		node := nodeOf(spec, member, found, entry, isMember)
		if member.Role == Head && node.Container == running && seen.GCSError != nil {
			node.SpecDrift = append(node.SpecDrift, seen.GCSError.Error())
		}
		if member.Role == Head && seen.GCSError == nil && seen.Table.Open && usesFile(found.container) && spec.Authenticated {
			node.SpecDrift = append(node.SpecDrift, "Ray answers without its token")
		}
		if member.Role == Head {
			node.SpecDrift = append(node.SpecDrift, uninvited(spec, byHost, strangers)...)
		}
		node.SpecDrift = append(node.SpecDrift, tokenDrift(spec, member, found, looks[spec.Members[0].Host])...)
		seen.Nodes[member.Host] = node
		if found.exists && !ours(spec, found.container) {
			seen.Foreign = append(seen.Foreign, member.Host)
		}
	}
	return seen, nil
}

// lookAt reads one host.
func lookAt(ctx context.Context, spec Spec, machine fleet.Machine) (look, error) {
	var found look
	var err error
	fail := func(step string, err error) (look, error) {
		return found, &Error{Host: machine.Host(), Step: step, Cause: err}
	}
	if found.facts, err = machine.Facts(ctx); err != nil {
		return fail("read the node's facts", err)
	}
	containers, err := machine.Containers(ctx)
	if err != nil {
		return fail("list the containers", err)
	}
	found.declared, err = machine.Image(ctx, spec.Image)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fail("inspect image "+spec.Image, err)
	}
	if found.container, found.exists = find(spec, containers); !found.exists {
		return found, nil
	}
	if found.declared.ID == found.container.ImageID {
		found.imageEnv = found.declared.Env
		return found, nil
	}
	own, err := machine.Image(ctx, found.container.ImageID)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fail("inspect image "+found.container.ImageID, err)
	}
	found.imageEnv = own.Env
	return found, nil
}

// readOut is a node's token.
type readOut struct {
	value string
	found bool
}

// readTokens reads the token of each member that has a container which needs it.
func readTokens(ctx context.Context, spec Spec, machines map[string]fleet.Machine, looks map[string]look) (map[string]readOut, error) {
	tokens := map[string]readOut{}
	var mutex sync.Mutex
	err := onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		at := looks[member.Host]
		if !at.exists || !usesFile(at.container) && spec.Authentication != AuthToken {
			return nil
		}
		value, found, err := readToken(ctx, spec.Name, machine)
		if err != nil {
			return &Error{Host: machine.Host(), Step: "read Ray's token", Cause: err}
		}
		mutex.Lock()
		defer mutex.Unlock()
		tokens[member.Host] = readOut{value, found}
		return nil
	})
	return tokens, err
}

// errNoHead says that there is no GCS to ask.
var errNoHead = errors.New("the head's container is not running")

// askHead asks the GCS. answer is why it gave no table; failed is a head that cannot
// be reached, or a GCS that stays silent.
func askHead(ctx context.Context, spec Spec, machines map[string]fleet.Machine, looks map[string]look) (table gcs.Table, answer, failed error) {
	head, found := spec.head()
	if at := looks[head.Host]; !found || !at.exists || at.container.Status != running {
		return table, errNoHead, nil
	}
	// A GCS listens on every address of its node (read back from Ray 2.60); when the declared one has
	// left the interface, the loopback address still leads there.
	address := Address(spec)
	if !holdsAddress(looks[head.Host].facts, head.Address) {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(spec.port()))
	}
	at := looks[head.Host]
	shown := gcs.Credential{Token: at.container.Spec.Env[authToken]}
	if usesFile(at.container) {
		shown = gcs.Credential{Cluster: spec.Name} // The agent on the way reads it faster than we can.
	}
	table, err := ask(ctx, machines[head.Host], address, shown)
	switch {
	case err == nil:
		return table, nil, nil
	case ctx.Err() != nil, lost(err), silent(err): // whether the cluster is as declared cannot be told
		return table, nil, &Error{Host: head.Host, Step: "ask the GCS at " + address, Cause: err}
	}
	return table, err, nil
}

// lost says whether the way to the GCS failed, and not the GCS: SSH itself, or the agent that asks.
func lost(err error) bool {
	var ssh *sshx.Error
	var helper *agent.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &helper):
		return helper.Code != agent.RefusedConnect && helper.Code != agent.RefusedBroken
	}
	return errors.As(err, &ssh) && ssh.Kind != sshx.ConnectFailed
}

// onEach runs an act on every member at once and joins what failed, in the members' order.
func onEach(ctx context.Context, members []Member, machines map[string]fleet.Machine, act func(context.Context, Member, fleet.Machine) error) error {
	failures := make([]error, len(members))
	var group sync.WaitGroup
	for i, member := range members {
		machine, found := machines[member.Host]
		if !found {
			failures[i] = &Error{Host: member.Host, Step: "connect", Cause: errors.New("no connection was given for this member")}
			continue
		}
		group.Go(func() { failures[i] = act(ctx, member, machine) })
	}
	group.Wait()
	return errors.Join(failures...)
}

// checkBaked refuses an image that brings another machine's identity where nothing takes its place.
func checkBaked(spec Spec, member Member, found engine.Image, facts agent.Facts) error {
	container, err := ContainerSpec(spec, member, facts)
	if err != nil {
		return nil //nolint:nilerr // An address that is not there yet, or not any more, is told elsewhere.
	}
	foreign := image.Foreign(found.Env, container.Env)
	if len(foreign) == 0 {
		return nil
	}
	return &Error{Host: member.Host, Step: "inspect image " + spec.Image,
		Cause:  fmt.Errorf("the image sets %s, which names the devices of the machine that it was made for, and %s has no value to put in its place", strings.Join(foreign, " and "), member.label()),
		Advice: "Build one without: FROM " + spec.Image + ", then ENV with an empty value for each. Or give the node what the value is for: see the RDMA devices and their GIDs in its facts (show_gids)."}
}

// CheckImage proves that every member has the image, the same one, built for the member's
// architecture, and without another machine's identity. It reads snapshots only.
func CheckImage(ctx context.Context, spec Spec, machines map[string]fleet.Machine) error {
	images := make([]engine.Image, len(spec.Members))
	err := onEach(ctx, spec.Members, machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		step := "inspect image " + spec.Image
		found, err := machine.Image(ctx, spec.Image)
		if errors.Is(err, engine.ErrNotFound) {
			return &Error{Host: member.Host, Step: step, Cause: fmt.Errorf("%s does not have the image: %w", member.label(), err),
				Advice: "Pull or load " + spec.Image + " on every node of the cluster first."}
		}
		if err != nil {
			return &Error{Host: member.Host, Step: step, Cause: err}
		}
		facts, err := machine.Facts(ctx)
		if err != nil {
			return &Error{Host: member.Host, Step: "read the node's facts", Cause: err}
		}
		if found.Architecture != "" && facts.Architecture != "" && found.Architecture != facts.Architecture {
			return &Error{Host: member.Host, Step: step, Cause: fmt.Errorf("the image is built for %s, and %s is %s", found.Architecture, member.label(), facts.Architecture),
				Advice: "Pull the image with --platform linux/" + facts.Architecture + "."}
		}
		if err := checkBaked(spec, member, found, facts); err != nil {
			return err
		}
		images[slices.IndexFunc(spec.Members, func(one Member) bool { return one.Host == member.Host })] = found
		return nil
	})
	if err != nil {
		return err
	}
	for i, image := range images {
		if image.ID != images[0].ID {
			return &Error{Host: spec.Members[i].Host, Step: "compare image " + spec.Image,
				Cause:  fmt.Errorf("%s has %s under this name, and %s has %s", spec.Members[i].label(), short(image.ID), spec.Members[0].label(), short(images[0].ID)),
				Advice: "Ray and vLLM must be the same on every node. Pull the image again everywhere, and name it by digest."}
		}
	}
	return nil
}
