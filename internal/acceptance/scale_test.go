package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
	"github.com/spark-stack/terraform-provider-spark/internal/hosttest"
)

const (
	// manyNodes is the scale that the provider is held to.
	manyNodes = 64
	// farAway makes 100 ms a round trip: a look at a node takes more than a second then, and at 64 nodes
	// one after the other more than a minute.
	farAway = 50 * time.Millisecond
	// atOnceLimit is far above what nodes at once take, and far below nodes one after the other.
	atOnceLimit = 30 * time.Second
	// providerMemory bounds the provider's process with many nodes, in bytes; 66 MB have been measured.
	providerMemory = 160 << 20
)

// nodesOf is a configuration of all hosts of a fleet.
func nodesOf(f *hosttest.Fleet) string {
	var hosts []string
	for _, host := range f.Hosts() {
		hosts = append(hosts, strconv.Quote(host.Address()))
	}
	return f.ProviderConfig() + fmt.Sprintf("resource \"spark_node\" \"all\" {\n  for_each = toset([%s])\n  host     = each.value\n}\n", strings.Join(hosts, ", "))
}

// TestManyNodes: with 64 nodes, each is connected to once a process and looked at once an operation,
// all at the same time, and the provider stays small.
func TestManyNodes(t *testing.T) {
	f := hosttest.NewFleet(t, manyNodes)
	ws := clitest.New(t, nodesOf(f), nil)
	// An apply is two operations in two processes: its plan, and what it does.
	each(t, f, "apply", 2, func() { ws.Apply() })
	f.SetDelay(farAway)
	each(t, f, "plan", 1, func() {
		ended, peak := peakMemory(t)
		took := ws.Empty("-parallelism=" + strconv.Itoa(manyNodes)).Took
		ended()
		if took > atOnceLimit {
			t.Errorf("the plan took %s: its nodes are not asked at once", took)
		}
		if most := peak(); most == 0 || most > providerMemory {
			t.Errorf("the provider took %d MB, at most %d were expected", most>>20, providerMemory>>20)
		}
	})
	f.SetDelay(0)
	each(t, f, "destroy", 2, func() { ws.Destroy() })
}

// each proves what an act cost every host: processes connections, logins and looks.
func each(t *testing.T, f *hosttest.Fleet, what string, processes int64, act func()) {
	t.Helper()
	before := f.Counters()
	act()
	for i, now := range f.Counters() {
		connections, handshakes, looks := now.Connections-before[i].Connections, now.Handshakes-before[i].Handshakes, now.Facts-before[i].Facts
		if connections != processes || handshakes != processes || looks > processes {
			t.Fatalf("%s: %s saw %d connections, %d logins and %d looks; one of each a process was expected, and there are %d",
				what, f.Host(i).Name(), connections, handshakes, looks, processes)
		}
		if what == "plan" && looks != 1 {
			t.Fatalf("%s was looked at %d times", f.Host(i).Name(), looks)
		}
	}
}

// peakMemory watches the provider processes that this test starts until ended is called; peak is the
// most that one of them had resident, in bytes.
func peakMemory(t *testing.T) (ended func(), peak func() int64) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, residentPeak())
			}
		}
	}()
	return func() { close(stop) }, func() int64 { return <-done }
}

// residentPeak is the highest VmHWM of the provider processes below this one, in bytes.
func residentPeak() int64 {
	var most int64
	files, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is valid
	values := map[string]map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(content)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.TrimSpace(value)
		}
		values[fields["Pid"]] = fields
	}
	for _, fields := range values {
		if strings.HasPrefix("terraform-provider-spark", fields["Name"]) && fields["Name"] != "terraform" && below(values, fields) {
			kib, _, _ := strings.Cut(fields["VmHWM"], " ")
			size, err := strconv.ParseInt(kib, 10, 64)
			if err == nil { // else it ends just now
				most = max(most, size<<10)
			}
		}
	}
	return most
}

// below says whether a process descends from this one.
func below(values map[string]map[string]string, fields map[string]string) bool {
	for fields != nil {
		if fields["PPid"] == strconv.Itoa(os.Getpid()) {
			return true
		}
		fields = values[fields["PPid"]]
	}
	return false
}
