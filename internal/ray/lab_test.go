//go:build lab

package ray

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// labInfo is the part of lab/info that this test needs.
type labInfo struct {
	User       string `json:"user"`
	Key        string `json:"private_key_file"`
	KnownHosts string `json:"known_hosts_file"`
	Images     struct {
		Ray string `json:"ray"`
	} `json:"images"`
	Nodes []struct {
		Name       string `json:"name"`
		Management string `json:"management_address"`
		Fabric     string `json:"fabric_address"`
	} `json:"nodes"`
}

// labPair is a cluster of the lab's first two nodes, under a name and port of its own.
func labPair(t *testing.T) (Spec, map[string]fleet.Machine) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "../../lab/info").Output()
	if err != nil {
		t.Fatalf("lab/info: %v", err)
	}
	var info labInfo
	if err := json.Unmarshal(output, &info); err != nil {
		t.Fatal(err)
	}
	pool := fleet.NewPool(fleet.Defaults{User: info.User, PrivateKeyFile: info.Key, KnownHostsFiles: []string{info.KnownHosts}})
	t.Cleanup(pool.Close)
	spec := Spec{Name: "raytest", Image: info.Images.Ray, Port: 26379, WeightsDir: "~/raytest-models", Authentication: AuthToken, Authenticated: true}
	machines := map[string]fleet.Machine{}
	for i, node := range info.Nodes[:2] {
		role := Worker
		if i == 0 {
			role = Head
		}
		machines[node.Management] = pool.Machine(fleet.Connection{Host: node.Management})
		spec.Members = append(spec.Members, Member{Host: node.Management, Name: node.Name, Role: role, Address: node.Fabric, GPUs: 1})
	}
	return spec, machines
}

// TestLab brings real Ray up over two nodes, breaks it in the ways of the field, and repairs it.
func TestLab(t *testing.T) {
	spec, machines := labPair(t)
	ctx := t.Context()
	head, worker := spec.Members[0], spec.Members[1]
	changed := func() {
		for _, machine := range machines {
			machine.Changed()
		}
	}
	look := func() Seen {
		t.Helper()
		changed()
		start := time.Now()
		seen, err := Look(ctx, spec, machines)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("look: %s", time.Since(start).Round(time.Millisecond))
		return seen
	}
	apply := func() error {
		t.Helper()
		replace := Decide(Want(spec), look().Nodes)
		start := time.Now()
		err := Apply(ctx, spec, machines, replace, func(line string) { t.Logf("%6.2f s %s", time.Since(start).Seconds(), line) })
		t.Logf("apply of %d: %s", len(replace), time.Since(start).Round(10*time.Millisecond))
		return err
	}
	mustBeUp := func() {
		t.Helper()
		if err := apply(); err != nil {
			var typed *Error
			if errors.As(err, &typed) {
				t.Logf("evidence:\n%s", typed.Evidence)
			}
			t.Fatal(err)
		}
		seen := look()
		if lines := Lines(Want(spec), seen.Nodes); len(lines) > 0 {
			t.Fatalf("after apply: %q", lines)
		}
		if findings := Gate(Want(spec), seen.Table, seen.Facts); len(findings) > 0 {
			t.Fatalf("gate: %+v", findings)
		}
	}
	client := func(host string) engine.Engine {
		t.Helper()
		client, err := machines[host].Engine(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	destroy := func() {
		t.Helper()
		start := time.Now()
		if err := Destroy(ctx, spec, machines, nil); err != nil {
			t.Fatal(err)
		}
		t.Logf("destroy: %s", time.Since(start).Round(10*time.Millisecond))
	}

	if err := CheckImage(ctx, spec, machines); err != nil {
		t.Fatal(err)
	}
	destroy()
	if !look().Gone() {
		t.Fatal("something is left")
	}
	if err := CheckFree(ctx, spec, machines); err != nil {
		t.Fatal(err)
	}
	defer destroy()

	t.Log("-- from nothing")
	mustBeUp()
	for range 3 {
		start := time.Now()
		if _, err := Ask(ctx, spec, machines[head.Host]); err != nil {
			t.Fatal(err)
		}
		t.Logf("GCS asked through SSH: %s", time.Since(start).Round(10*time.Microsecond))
	}
	session := Session(look().Nodes)

	t.Log("-- worker's container removed")
	if err := client(worker.Host).Remove(ctx, ContainerName(spec.Name), time.Second); err != nil {
		t.Fatal(err)
	}
	if lines := Lines(Want(spec), look().Nodes); !slices.Equal(lines, []string{worker.Name + ": container is missing"}) {
		t.Errorf("lines: %q", lines)
	}
	mustBeUp()
	if Session(look().Nodes) == session {
		t.Error("the session must change with a container")
	}

	t.Log("-- worker replaced in good order")
	start := time.Now()
	if err := Apply(ctx, spec, machines, map[string]string{worker.Host: "trial"}, func(line string) { t.Logf("%6.2f s %s", time.Since(start).Seconds(), line) }); err != nil {
		t.Fatal(err)
	}
	t.Logf("apply: %s", time.Since(start).Round(10*time.Millisecond))

	t.Log("-- head restarted by hand without --node-ip-address")
	seen := look()
	made, err := ContainerSpec(spec, head, seen.Facts[head.Host])
	if err != nil {
		t.Fatal(err)
	}
	made.Command = slices.DeleteFunc(made.Command, func(word string) bool { return strings.HasPrefix(word, "--node-ip-address") })
	if err := client(head.Host).Remove(ctx, made.Name, time.Second); err != nil {
		t.Fatal(err)
	}
	id, err := client(head.Host).Create(ctx, made)
	if err != nil {
		t.Fatal(err)
	}
	if err := client(head.Host).Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if seen = look(); seen.GCSError == nil && len(seen.Table.Alive()) > 0 {
			break
		}
		time.Sleep(time.Second)
	}
	for _, line := range Lines(Want(spec), seen.Nodes) {
		t.Log(line)
	}
	findings := Gate(Want(spec), seen.Table, seen.Facts)
	for _, finding := range findings {
		t.Log(finding.Sentence)
	}
	if !slices.ContainsFunc(findings, func(one Finding) bool { return one.Fault == WrongAddress && one.Host == head.Host }) {
		t.Error("the famous bug was not found")
	}
	mustBeUp()

	t.Log("-- Ray refuses its arguments")
	bad := spec
	bad.Args = []string{"--no-such-flag"}
	start = time.Now()
	err = Apply(ctx, bad, machines, map[string]string{worker.Host: "trial"}, nil)
	var typed *Error
	if !errors.As(err, &typed) || typed.Host != worker.Host || !strings.Contains(typed.Evidence, "no-such-flag") {
		t.Errorf("got %v", err)
	} else {
		t.Logf("after %s: %v\n%s\n%s", time.Since(start).Round(10*time.Millisecond), err, typed.Evidence, typed.Advice)
	}
	mustBeUp()

	t.Log("-- Ray stopped inside of the worker's container, which runs on")
	if _, err := client(worker.Host).Exec(ctx, ContainerName(spec.Name), []string{"ray", "stop"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range Lines(Want(spec), look().Nodes) {
		t.Log(line)
	}
	mustBeUp()
	t.Log(path.Join("weights folder", WeightsPath(spec.WeightsDir, look().Facts[head.Host])))
}
