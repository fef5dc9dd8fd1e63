package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

const (
	manyHosts = 64
	// What a connected node may cost the client's process: 18 goroutines and 0.2 MB have been measured.
	goroutinesPerHost = 24
	bytesPerHost      = 1 << 20
	// childVariable makes this program the client's process.
	childVariable = "HOSTTEST_CLIENT"
)

// clientTask tells the child which hosts there are.
type clientTask struct {
	Port             int
	Key, KnownHosts  string
	Hosts            []string
	OperationsAtOnce int
}

// clientCost is what the child measured.
type clientCost struct {
	Before, Peak, Connected, Closed int // goroutines
	Heap                            int64
}

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		if err := beClient(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestManyHosts: 64 nodes with many operations at once cost one connection and one look each, and a
// bounded number of goroutines and bytes. The client is a process of its own, as the provider is.
func TestManyHosts(t *testing.T) {
	f := NewFleet(t, manyHosts, WithDelay(5*time.Millisecond))
	task := clientTask{Port: f.Port(), Key: f.PrivateKeyFile(), KnownHosts: f.KnownHosts(), OperationsAtOnce: 4}
	for _, host := range f.Hosts() {
		task.Hosts = append(task.Hosts, host.Address())
	}
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	command.Env = append(os.Environ(), childVariable+"="+string(text))
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("the client failed: %s", failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var cost clientCost
	if err := json.Unmarshal(output, &cost); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	operations := manyHosts * task.OperationsAtOnce * 2
	if most := manyHosts*goroutinesPerHost + operations; cost.Peak-cost.Before > most {
		t.Errorf("%d goroutines at once, at most %d were expected", cost.Peak-cost.Before, most)
	}
	if most := manyHosts * goroutinesPerHost; cost.Connected-cost.Before > most {
		t.Errorf("%d goroutines for %d idle nodes, at most %d were expected", cost.Connected-cost.Before, manyHosts, most)
	}
	if left := cost.Closed - cost.Before; left > manyHosts/8 {
		t.Errorf("%d goroutines are left after the end", left)
	}
	if cost.Heap > manyHosts*bytesPerHost {
		t.Errorf("%d KB of heap for %d nodes", cost.Heap>>10, manyHosts)
	}
	for _, host := range f.Hosts() {
		if seen := host.Counters(); seen.Connections != 1 || seen.Handshakes != 1 || seen.Facts != 1 {
			t.Fatalf("%s saw %+v, one connection, login and look were expected", host.Name(), seen)
		}
	}
}

// beClient asks all hosts for everything that a plan needs, several times at once.
func beClient(text string) error {
	var task clientTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cost := clientCost{Before: runtime.NumGoroutine()}
	before := heap()
	watched := make(chan struct{})
	watch := time.NewTicker(2 * time.Millisecond)
	go func() {
		defer close(watched)
		for range watch.C {
			if ctx.Err() != nil {
				return
			}
			cost.Peak = max(cost.Peak, runtime.NumGoroutine())
		}
	}()
	pool := fleet.NewPool(fleet.Defaults{Port: task.Port, User: User, PrivateKeyFile: task.Key, KnownHostsFiles: []string{task.KnownHosts}})
	failures := make(chan error, 2*len(task.Hosts)*task.OperationsAtOnce)
	var work sync.WaitGroup
	for _, host := range task.Hosts {
		machine := pool.Machine(fleet.Connection{Host: host})
		for range task.OperationsAtOnce {
			work.Go(func() {
				_, err := machine.Facts(ctx)
				failures <- err
			})
			work.Go(func() {
				_, err := machine.Containers(ctx)
				failures <- err
			})
		}
	}
	work.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	cost.Heap = heap() - before
	cost.Connected = runtime.NumGoroutine()
	pool.Close()
	for range 100 { // what was cut ends within a moment
		if cost.Closed = runtime.NumGoroutine(); cost.Closed <= cost.Before+1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	<-watched
	return json.NewEncoder(os.Stdout).Encode(cost)
}

// heap is what is in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
