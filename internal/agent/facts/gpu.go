package facts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// gpus lists the GPUs, with the driver's version, or says why there is no list.
func (s Source) gpus(ctx context.Context) ([]agent.GPU, string, string) {
	if s.NvidiaSMI != nil {
		return ReadSMI(s.NvidiaSMI(ctx))
	}
	return ReadSMI(s.run(ctx, smiTimeout, "nvidia-smi", "--query-gpu=index,name,uuid,driver_version", "--format=csv,noheader"))
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
	var silent *silentError
	if errors.As(err, &silent) {
		return silent.Error() + ": the driver hangs"
	}
	reason := "nvidia-smi: " + err.Error()
	if said := strings.Join(strings.Fields(output), " "); said != "" {
		reason += ": " + said
	}
	return reason
}

// notAvailable are the answers of nvidia-smi for what a product does not tell; GB10 tells no memory.
func notAvailable(field string) bool {
	switch field {
	case "[N/A]", "[Not Supported]", "N/A", "Not Supported":
		return true
	}
	return false
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
			if fields[i] = strings.TrimSpace(field); notAvailable(fields[i]) {
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

// details asks what the list cannot tell: the driver's CUDA, memory and processes. It runs beside the
// list and never costs it. Where the list is made up (NvidiaSMI), Run answers for this too.
func (s Source) details(ctx context.Context, facts *agent.Facts, odd *notes) (memoryMiB []int64) {
	if s.NvidiaSMI != nil && s.Run == nil {
		return nil
	}
	output, err := s.run(ctx, smiTimeout, "nvidia-smi", "-q", "-d", "MEMORY,PIDS")
	if err != nil {
		if !errors.Is(err, exec.ErrNotFound) { // GPUError says that one already
			odd.add(fmt.Errorf("nvidia-smi -q: %w", err))
		}
		return nil
	}
	report := ParseSMIReport(output)
	facts.CUDA, facts.GPUProcesses = report.CUDA, report.Processes
	for i, process := range facts.GPUProcesses {
		facts.GPUProcesses[i].Container = s.containerOf(process.PID)
	}
	return report.MemoryMiB
}

// SMIReport is what `nvidia-smi -q -d MEMORY,PIDS` tells.
type SMIReport struct {
	CUDA string
	// MemoryMiB of each GPU in order; 0 where it is not available.
	MemoryMiB []int64
	Processes []agent.GPUProcess
}

// cudaVersion is in the head of every report and table of nvidia-smi.
var cudaVersion = regexp.MustCompile(`CUDA Version\s*:\s*(\d+\.\d+)`)

// ParseSMIReport reads a report. Lines that it does not know are passed over: their number grows with
// each release.
func ParseSMIReport(output string) SMIReport {
	var report SMIReport
	if found := cudaVersion.FindStringSubmatch(output); found != nil {
		report.CUDA = found[1]
	}
	gpu, section := -1, ""
	for line := range strings.Lines(output) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " : ")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !strings.HasPrefix(line, " ") && strings.HasPrefix(line, "GPU ") {
			gpu++
			report.MemoryMiB = append(report.MemoryMiB, 0)
			continue
		}
		if gpu < 0 {
			continue
		}
		if strings.HasSuffix(key, "Memory Usage") || key == "Processes" {
			section = key
		}
		switch {
		case section == "FB Memory Usage" && key == "Total":
			report.MemoryMiB[gpu] = mebibytes(value)
		case section == "Processes":
			report.process(gpu, key, value)
		}
	}
	return report
}

// process takes a line of the part about processes.
func (r *SMIReport) process(gpu int, key, value string) {
	if key == "Process ID" {
		if pid, err := strconv.Atoi(value); err == nil && pid > 0 {
			r.Processes = append(r.Processes, agent.GPUProcess{GPU: gpu, PID: pid})
		}
		return
	}
	if len(r.Processes) == 0 || r.Processes[len(r.Processes)-1].GPU != gpu || notAvailable(value) {
		return
	}
	last := &r.Processes[len(r.Processes)-1]
	switch key {
	case "Type":
		last.Type = value
	case "Name":
		last.Name = value
	case "Used GPU Memory":
		last.MemoryMiB = mebibytes(value)
	}
}

// mebibytes reads "153 MiB"; 0 for anything else.
func mebibytes(text string) int64 {
	number, isMiB := strings.CutSuffix(text, " MiB")
	value, err := strconv.ParseInt(number, 10, 64)
	if !isMiB || err != nil || value < 0 {
		return 0
	}
	return value
}
