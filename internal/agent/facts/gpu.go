package facts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// smiTimeout bounds nvidia-smi, which hangs when the driver does.
const smiTimeout = 5 * time.Second

// gpus lists the GPUs, with the driver's version, or says why there is no list.
func (s Source) gpus(ctx context.Context) ([]agent.GPU, string, string) {
	query := s.NvidiaSMI
	if query == nil {
		query = nvidiaSMI
	}
	output, err := query(ctx)
	return ReadSMI(output, err)
}

// nvidiaSMI runs the program. Its messages come on standard output, whatever its exit code.
func nvidiaSMI(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, smiTimeout,
		fmt.Errorf("nvidia-smi did not answer within %s: the driver hangs", smiTimeout))
	defer cancel()
	command := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=index,name,uuid,driver_version", "--format=csv,noheader")
	// The program must not outlive the agent; the kernel ties it to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.WaitDelay = time.Second
	output, err := command.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(output), err
}

// ReadSMI understands what nvidia-smi said and how it ended. "No devices were found" (exit code 6)
// is an empty list; anything else that is not a list is a reason.
func ReadSMI(output string, err error) (gpus []agent.GPU, driver, reason string) {
	if strings.Contains(output, "No devices were found") {
		return []agent.GPU{}, "", ""
	}
	if err != nil {
		return []agent.GPU{}, "", smiReason(output, err)
	}
	gpus, driver, err = ParseSMI(output)
	if err != nil {
		return []agent.GPU{}, "", err.Error()
	}
	return gpus, driver, ""
}

func smiReason(output string, err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "nvidia-smi is not installed: the NVIDIA driver is missing"
	}
	reason := "nvidia-smi: " + err.Error()
	if said := strings.Join(strings.Fields(output), " "); said != "" {
		reason += ": " + said
	}
	return reason
}

// ParseSMI reads the lines "index, name, uuid, driver_version". Any field may be "[N/A]", which
// GB10 answers where other products have a number.
func ParseSMI(output string) (gpus []agent.GPU, driver string, err error) {
	gpus = []agent.GPU{}
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		fields := strings.Split(line, ",")
		if len(fields) < 4 {
			return nil, "", fmt.Errorf("nvidia-smi answered %q where index, name, UUID and driver were asked", line)
		}
		for i, field := range fields {
			if fields[i] = strings.TrimSpace(field); fields[i] == "[N/A]" || fields[i] == "[Not Supported]" {
				fields[i] = ""
			}
		}
		index, err := strconv.Atoi(fields[0])
		if err != nil && fields[0] != "" {
			return nil, "", fmt.Errorf("nvidia-smi answered %q where a GPU's index was asked", fields[0])
		}
		if fields[0] == "" {
			index = len(gpus)
		}
		last := len(fields) - 1
		gpus = append(gpus, agent.GPU{Index: index, Name: strings.Join(fields[1:last-1], ", "), UUID: fields[last-1]})
		if driver == "" {
			driver = fields[last]
		}
	}
	return gpus, driver, nil
}
