package facts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// dockerRoot is where Docker keeps images and containers unless it is told otherwise.
const dockerRoot = "/var/lib/docker"

// toolkit looks for the NVIDIA container toolkit and reads the engine's configuration file. What the
// running engine knows is asked of the engine.
func (s Source) toolkit(odd *notes) (agent.Toolkit, string) {
	var toolkit agent.Toolkit
	for _, folder := range []string{"/usr/bin", "/usr/local/bin", "/usr/local/nvidia/toolkit"} {
		for _, program := range []string{"nvidia-container-runtime-hook", "nvidia-container-runtime", "nvidia-ctk"} {
			if s.exists(folder, program) {
				toolkit.Programs = append(toolkit.Programs, folder+"/"+program)
			}
		}
	}
	for _, folder := range []string{"/etc/cdi", "/var/run/cdi"} {
		names, err := s.names(folder)
		odd.add(err)
		for _, name := range names {
			toolkit.CDI = append(toolkit.CDI, filepath.Join(folder, name))
		}
	}
	config, err := ParseDaemonConfig(s.text("/etc/docker/daemon.json"))
	odd.add(err)
	toolkit.Runtime = config.NVIDIA
	return toolkit, config.Root
}

// DaemonConfig is what we read of /etc/docker/daemon.json.
type DaemonConfig struct {
	// Root is the data folder, or Docker's default.
	Root string
	// NVIDIA says that there is a runtime of that name.
	NVIDIA bool
}

// ParseDaemonConfig reads /etc/docker/daemon.json; an empty text is a file that is not there.
func ParseDaemonConfig(text string) (DaemonConfig, error) {
	config := DaemonConfig{Root: dockerRoot}
	if strings.TrimSpace(text) == "" {
		return config, nil
	}
	var file struct {
		Root     string                     `json:"data-root"`
		Runtimes map[string]json.RawMessage `json:"runtimes"`
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return config, fmt.Errorf("/etc/docker/daemon.json is not as expected: %w", err)
	}
	if file.Root != "" {
		config.Root = file.Root
	}
	_, config.NVIDIA = file.Runtimes["nvidia"]
	return config, nil
}

// target is systemd's default target, by the link that the administrator or the distribution set.
func (s Source) target() string {
	for _, folder := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if link, err := os.Readlink(s.path(folder, "default.target")); err == nil {
			return filepath.Base(link)
		}
	}
	return ""
}
