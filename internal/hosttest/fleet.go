// Package hosttest is a fleet of simulated DGX Spark hosts inside the test's own process. The code
// under test talks to it over the real protocols (SSH, Docker's HTTP API, the agent's HTTP/2, gRPC);
// only what lies behind them is made up: an engine without a kernel, a Ray without Python, a vLLM
// without a model. Tests move the world by the methods of [Host] and assert on what was asked of it.
package hosttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// User is the only login that the hosts accept.
const User = "aurora"

// DefaultImage is on every host from the start.
const DefaultImage = "registry.example/vllm-ray:1"

// Timing says how long the simulated programs take. All are short, yet not zero, so that waits are
// exercised.
type Timing struct {
	GCSUp        time.Duration // from the head's start to its first answer
	Join         time.Duration // from a worker's start to its line in the node table
	JoinTimeout  time.Duration // until a worker without a head gives up
	HeadLoss     time.Duration // until a worker without its head exits
	AddressLoss  time.Duration // until a Ray node is DEAD whose address is gone; long, so that tests see one state
	NodeLoss     time.Duration // until a killed Ray node is DEAD
	Place        time.Duration // until a placement group is created
	Load         time.Duration // from the placement to a healthy server
	PlaceTimeout time.Duration // until a server without resources gives up
	RankLoss     time.Duration // until a server that lost a rank exits
}

// DefaultTiming is about a thousandth of the measured times, but for AddressLoss.
func DefaultTiming() Timing {
	return Timing{
		GCSUp: 20 * time.Millisecond, Join: 20 * time.Millisecond, JoinTimeout: time.Second,
		HeadLoss: 50 * time.Millisecond, AddressLoss: time.Hour, NodeLoss: 30 * time.Millisecond,
		Place: 10 * time.Millisecond, Load: 40 * time.Millisecond,
		PlaceTimeout: time.Second, RankLoss: 50 * time.Millisecond,
	}
}

// InstantTiming is [DefaultTiming] with everything up at the first look, for tests that do not care
// for waits: what polls every second or two then never polls twice.
func InstantTiming() Timing {
	timing := DefaultTiming()
	timing.GCSUp, timing.Join, timing.Place, timing.Load = 0, 0, 0, 0
	return timing
}

// Option changes a fleet before it starts.
type Option func(*Fleet)

// WithTiming replaces [DefaultTiming].
func WithTiming(timing Timing) Option { return func(f *Fleet) { f.timing = timing } }

// WithDelay puts a long line to every host: half of what it adds to a round trip of SSH.
func WithDelay(oneWay time.Duration) Option {
	return func(f *Fleet) { f.SetDelay(oneWay) }
}

// Fleet is a set of hosts that see each other.
type Fleet struct {
	t      reporter
	dir    string
	timing Timing
	oneWay atomic.Int64 // see SetDelay
	hosts  []*Host
	port   int
	key    ssh.PublicKey
	// lookKey is the one that may only look.
	lookKey ssh.PublicKey

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	// mu guards the world of all hosts: one lock, because Ray and vLLM reach across hosts.
	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something changed
	journal []Entry
	runners []Runner
	serial  int
}

// reporter is the part of a test that a fleet needs.
type reporter interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatalf(format string, arguments ...any)
}

// maxHosts is what the address plan has room for.
const maxHosts = 200

// NewFleet starts n hosts, aurora-1 to aurora-n at 127.0.0.11 and up, all on one SSH port; they end
// with the test.
func NewFleet(t testing.TB, n int, options ...Option) *Fleet {
	t.Helper()
	f, err := start(t, t.TempDir(), n, options...)
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
	t.Cleanup(f.Close)
	return f
}

// Start is [NewFleet] outside of a test, for the benchmark; dir is the fleet's own folder. The caller
// closes the fleet. A method of a host that fails there panics: it is a mistake of the caller.
func Start(dir string, n int, options ...Option) (*Fleet, error) {
	return start(panicking{}, dir, n, options...)
}

// panicking reports where there is no test.
type panicking struct{}

func (panicking) Helper()                                {}
func (panicking) Errorf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }
func (panicking) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

func start(t reporter, dir string, n int, options ...Option) (*Fleet, error) {
	if n < 1 || n > maxHosts {
		return nil, fmt.Errorf("a fleet has 1 to %d hosts, not %d", maxHosts, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fleet{
		t: t, dir: dir, timing: DefaultTiming(), ctx: ctx, cancel: cancel,
		changed: make(chan struct{}),
	}
	for _, option := range options {
		option(f)
	}
	if err := f.begin(n); err != nil {
		f.Close() // the loops of a half-built fleet end too
		return nil, err
	}
	return f, nil
}

// begin makes the hosts and opens their ports.
func (f *Fleet) begin(n int) error {
	if err := f.makeKeys(); err != nil {
		return fmt.Errorf("make the login key: %w", err)
	}
	for i := range n {
		host, err := newHost(f, i)
		if err != nil {
			return fmt.Errorf("make host %d: %w", i, err)
		}
		f.hosts = append(f.hosts, host)
	}
	if err := f.listen(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := f.writeKnownHosts(); err != nil {
		return fmt.Errorf("write known_hosts: %w", err)
	}
	f.tasks.Go(f.live)
	return nil
}

// SetDelay sets the one-way delay of SSH connections that are made from now on; see [WithDelay].
func (f *Fleet) SetDelay(oneWay time.Duration) { f.oneWay.Store(int64(oneWay)) }

// Host returns the host with an index from 0.
func (f *Fleet) Host(i int) *Host {
	f.t.Helper()
	if i < 0 || i >= len(f.hosts) {
		f.t.Fatalf("hosttest: no host %d in a fleet of %d", i, len(f.hosts))
	}
	return f.hosts[i]
}

// Hosts returns all hosts in order.
func (f *Fleet) Hosts() []*Host { return append([]*Host(nil), f.hosts...) }

// Port is the common SSH port.
func (f *Fleet) Port() int { return f.port }

// PrivateKeyFile is the path of the key that the hosts accept.
func (f *Fleet) PrivateKeyFile() string { return filepath.Join(f.dir, "id_ed25519") }

// KnownHosts is the path of a known_hosts file with the hosts' first keys; see [Fleet.TrustHostKeys].
func (f *Fleet) KnownHosts() string { return filepath.Join(f.dir, "known_hosts") }

// TrustHostKeys writes the hosts' present keys to the known_hosts file, as somebody does who checked
// a changed key.
func (f *Fleet) TrustHostKeys() {
	f.t.Helper()
	if err := f.writeKnownHosts(); err != nil {
		f.t.Fatalf("hosttest: write known_hosts: %v", err)
	}
}

// ProviderConfig is a provider block that reaches the fleet.
func (f *Fleet) ProviderConfig() string {
	return fmt.Sprintf(`provider "spark" {
  user             = %q
  port             = %d
  private_key_file = %q
  known_hosts_file = %q
}
`, User, f.port, f.PrivateKeyFile(), f.KnownHosts())
}

// WriteModel makes a small model in the weights of one host; see [Host.WriteModel].
func (f *Fleet) WriteModel(host int, folder string) {
	f.t.Helper()
	f.Host(host).WriteModel(folder)
}

// Close ends the fleet and waits for all that it started. The test's cleanup calls it.
func (f *Fleet) Close() {
	f.cancel()
	for _, host := range f.hosts {
		host.ssh.close()
	}
	f.mu.Lock()
	for _, host := range f.hosts {
		for _, c := range host.containers {
			c.halt()
		}
	}
	f.broadcast()
	f.mu.Unlock()
	f.tasks.Wait()
}

// live moves the simulated programs on; every read does too, so the tick only bounds how late
// those notice who merely wait.
func (f *Fleet) live() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
			f.mu.Lock()
			f.settle()
			f.mu.Unlock()
		}
	}
}

// settle moves every running program to the present. The lock is held.
func (f *Fleet) settle() {
	now := time.Now()
	for _, host := range f.hosts {
		for _, c := range append([]*instance(nil), host.containers...) {
			if c.program != nil {
				c.program.step(now)
			}
		}
	}
}

// broadcast wakes those who wait for a change. The lock is held.
func (f *Fleet) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await calls look under the lock, now and after every change, until it says true or ctx ends.
func (f *Fleet) await(ctx context.Context, look func() bool) error {
	for {
		f.mu.Lock()
		f.settle()
		done, changed := look(), f.changed
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.ctx.Done():
			return errors.New("the fleet is closed")
		}
	}
}

func (f *Fleet) makeKeys() (err error) {
	if f.key, err = makeKey(f.PrivateKeyFile()); err != nil {
		return err
	}
	f.lookKey, err = makeKey(f.ReadOnlyKeyFile())
	return err
}

// makeKey writes a new private key to a file.
func makeKey(file string) (ssh.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, User)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(public)
}

func (f *Fleet) writeKnownHosts() error {
	var text strings.Builder
	for _, host := range f.hosts {
		key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.ssh.publicKey())))
		fmt.Fprintf(&text, "[%s]:%d %s\n", host.Address(), f.port, key)
	}
	return os.WriteFile(f.KnownHosts(), []byte(text.String()), 0o600)
}
