package facts

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

const (
	// smiTimeout bounds nvidia-smi, which hangs when the driver does.
	smiTimeout = 5 * time.Second
	// programTimeout bounds programs whose answer we can do without.
	programTimeout = time.Second
)

// run runs a program within a limit. Another machine (Root) has none unless Run is set.
func (s Source) run(ctx context.Context, limit time.Duration, program string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &silentError{program: program, limit: limit})
	defer cancel()
	if s.Run != nil {
		return s.Run(ctx, program, arguments...)
	}
	if s.Root != "" {
		return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
	}
	command := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // Our own fixed commands.
	// The program must not outlive the agent; the kernel ties it to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.WaitDelay = time.Second
	output, err := command.Output() // nvidia-smi has its messages there too, whatever its exit code.
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(output), err
}

// silentError is a program that did not end in time.
type silentError struct {
	program string
	limit   time.Duration
}

// Error implements error.
func (e *silentError) Error() string {
	return fmt.Sprintf("%s did not answer within %s", e.program, e.limit)
}

// sudo says whether it works without a password: "yes", "no", or empty where it was not asked. Only
// members of the groups that it knows are asked about: for others sudo tells the administrator.
func (s Source) sudo(ctx context.Context, user agent.User) string {
	if user.UID == 0 {
		return "yes"
	}
	for _, group := range user.Groups {
		switch group {
		case "sudo", "admin", "wheel":
			if _, err := s.run(ctx, programTimeout, "sudo", "-n", "true"); err != nil {
				return "no"
			}
			return "yes"
		}
	}
	return ""
}
