package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// loadNote says that something else uses the machine, from the load of the last minute; empty if
// that is unknown or low. It counts what ran before the figure, and so the bench itself a little.
func loadNote() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "" // no Linux: nothing is known
	}
	var load float64
	if _, err := fmt.Sscanf(strings.TrimSpace(string(content)), "%f", &load); err != nil {
		return ""
	}
	if cores := runtime.NumCPU(); load > 2*float64(cores) {
		return fmt.Sprintf("the machine was busy: load %.1f on %d cores", load, cores)
	}
	return ""
}
