// Package facts looks at a node: /sys, /proc, /etc, netlink and a few programs. The parsers are
// functions of text or bytes; what reads the machine is small and takes its folders and programs
// from a Source.
package facts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Source is where the facts come from. The zero value is the real machine; each set field replaces
// one part of it.
type Source struct {
	// Root is put before /sys, /proc, /etc, /usr, /run and /dev. With it, the kernel and programs are
	// asked only through the fields below: this machine's answers are not that one's.
	Root         string
	Hostname     string
	Architecture string
	Kernel       string
	User         *agent.User
	Interfaces   func() ([]agent.Interface, error)
	Routing      func() (agent.Routing, error)
	NvidiaSMI    func(ctx context.Context) (string, error)
	Listening    func() ([]int, error)
	Listeners    func() ([]agent.Listener, error)
	Now          func() time.Time
	// Run runs any other program: nvidia-smi for its details, sudo, iptables. It gives what the
	// program wrote to its standard output.
	Run func(ctx context.Context, program string, arguments ...string) (string, error)
}

// Gather takes one look. Programs are its slowest part and run beside the rest and each other. It
// fails only without what every node has; all else that cannot be read is named in Unread.
func (s Source) Gather(ctx context.Context) (agent.Facts, error) {
	facts := agent.Facts{Time: s.now(), User: s.Account()}
	user := facts.User
	var odd notes
	var memoryMiB []int64
	var wait sync.WaitGroup
	// Each part fills in fields that are its own.
	wait.Go(func() { facts.GPUs, facts.Driver, facts.GPUError = s.gpus(ctx) })
	wait.Go(func() { memoryMiB = s.details(ctx, &facts, &odd) })
	wait.Go(func() { facts.User.Sudo = s.sudo(ctx, user) })
	wait.Go(func() { facts.Firewall = s.firewall(ctx, user, &odd) })
	wait.Go(func() { facts.RDMA, facts.Verbs = s.rdma(&odd), s.verbs(&odd) })
	wait.Go(func() { s.processes(&facts, &odd) })
	err := s.gather(&facts, &odd)
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return agent.Facts{}, err
	}
	for i := range min(len(facts.GPUs), len(memoryMiB)) {
		facts.GPUs[i].MemoryMiB = memoryMiB[i]
	}
	facts.Unread = odd.sorted()
	return facts, err
}

// gather fills in what files and the kernel tell at once.
func (s Source) gather(facts *agent.Facts, odd *notes) error {
	var errs [4]error
	facts.Architecture = s.Architecture
	if facts.Architecture == "" {
		facts.Architecture = runtime.GOARCH
	}
	facts.Hostname, errs[0] = s.hostname()
	facts.Kernel, errs[1] = s.kernel()
	facts.Interfaces, errs[2] = s.interfaces()
	facts.Memory, errs[3] = ParseMeminfo(s.text("/proc/meminfo"))
	facts.HostnameAddresses = ParseHosts(s.text("/etc/hosts"), facts.Hostname)
	facts.MachineID = s.text("/etc/machine-id")
	facts.OS = ParseOSRelease(s.text("/etc/os-release"))
	facts.DefaultInterface = ParseDefaultRoute(s.text("/proc/net/route"))
	facts.Sysctls = s.sysctls(facts.Interfaces)
	facts.Mounts = s.mounts(odd)
	facts.Toolkit, facts.DockerRoot = s.toolkit(odd)
	facts.Display.Target = s.target()
	facts.DRMOverride = s.exists("/etc/modprobe.d/zz-nvidia-drm-override.conf")
	var err error
	facts.Routing, err = s.routing()
	odd.add(err)
	return errors.Join(errs[:]...)
}

// notes collects what could not be read, from several parts at once.
type notes struct {
	mutex sync.Mutex
	lines []string
}

func (n *notes) add(err error) {
	if err == nil {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.lines = append(n.lines, err.Error())
}

func (n *notes) sorted() []string {
	slices.Sort(n.lines)
	return n.lines
}

func (s Source) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s Source) hostname() (string, error) {
	if s.Hostname != "" {
		return s.Hostname, nil
	}
	return os.Hostname()
}

func (s Source) kernel() (string, error) {
	if s.Kernel != "" {
		return s.Kernel, nil
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", os.NewSyscallError("uname", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

// path is a path of the machine below Root.
func (s Source) path(elements ...string) string {
	return filepath.Join(append([]string{s.Root, "/"}, elements...)...)
}

// text reads a small file, trimmed. Many files of /sys answer a read with an error in place of a
// value (speed of an unplugged device, phys_port_name of a virtual one): that is an empty text, as
// for a file that is not there.
func (s Source) text(elements ...string) string {
	content, err := os.ReadFile(s.path(elements...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func (s Source) exists(elements ...string) bool {
	_, err := os.Stat(s.path(elements...))
	return err == nil
}

// names lists a folder; one that is not there is empty.
func (s Source) names(elements ...string) ([]string, error) {
	folder, err := os.Open(s.path(elements...))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(-1)
	slices.Sort(names)
	if err = errors.Join(err, folder.Close()); err != nil {
		return nil, fmt.Errorf("list %s: %w", filepath.Join(elements...), err)
	}
	return names, nil
}
