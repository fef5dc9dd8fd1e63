// Package facts looks at a node: /sys, /proc, /etc and nvidia-smi. The parsers are functions of
// text; what reads the machine is small and takes its folders and programs from a Source.
package facts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Source is where the facts come from. The zero value is the real machine; each set field replaces
// one part of it.
type Source struct {
	// Root is put before /sys, /proc and /etc.
	Root         string
	Hostname     string
	Architecture string
	Kernel       string
	User         *agent.User
	Interfaces   func() ([]agent.Interface, error)
	NvidiaSMI    func(ctx context.Context) (string, error)
	Listening    func() ([]int, error)
	Now          func() time.Time
}

// Gather takes one look. nvidia-smi is the slowest part and runs beside the rest.
func (s Source) Gather(ctx context.Context) (agent.Facts, error) {
	var facts agent.Facts
	var wait sync.WaitGroup
	wait.Go(func() {
		facts.GPUs, facts.Driver, facts.GPUError = s.gpus(ctx)
	})
	err := s.gather(&facts)
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return agent.Facts{}, err
	}
	return facts, err
}

// gather fills in all but the GPUs.
func (s Source) gather(facts *agent.Facts) error {
	var errs [6]error
	facts.Architecture = s.Architecture
	if facts.Architecture == "" {
		facts.Architecture = runtime.GOARCH
	}
	facts.Time = s.now()
	facts.Hostname, errs[0] = s.hostname()
	facts.Kernel, errs[1] = s.kernel()
	facts.OS = ParseOSRelease(s.text("/etc/os-release"))
	facts.User = s.Account()
	facts.Interfaces, errs[2] = s.interfaces()
	facts.DefaultInterface = ParseDefaultRoute(s.text("/proc/net/route"))
	facts.RDMA, errs[3] = s.rdma()
	facts.Memory, errs[4] = ParseMeminfo(s.text("/proc/meminfo"))
	facts.Listening, errs[5] = s.listening()
	return errors.Join(errs[:]...)
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

// names lists a folder; one that is not there is empty.
func (s Source) names(elements ...string) ([]string, error) {
	entries, err := os.ReadDir(s.path(elements...))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}
