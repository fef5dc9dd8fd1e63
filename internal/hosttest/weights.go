package hosttest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// modelProblem says what vLLM would when it loads a model in a container; empty if it can.
func (c *instance) modelProblem(model, revision string) string {
	folder := model
	if !strings.HasPrefix(model, "/") {
		folder = c.hubFolder(model, revision)
		if folder == "" {
			return "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder " +
				"for the specified revision on the local disk and outgoing traffic has been disabled."
		}
	}
	local, ok := c.hostPath(folder)
	if !ok {
		return fmt.Sprintf("OSError: Can't load the configuration of '%s': no such folder in the container", folder)
	}
	return checkModel(local)
}

// hostPath translates a path in the container to the test's machine, by its bind mounts.
func (c *instance) hostPath(inside string) (string, bool) {
	best, found := "", false
	longest := -1
	for _, point := range c.mountPoints() {
		rest, ok := strings.CutPrefix(path.Clean(inside)+"/", strings.TrimSuffix(point.Destination, "/")+"/")
		if ok && point.Name == "" && len(point.Destination) > longest {
			best, longest, found = c.host.Path(point.Source+"/"+rest), len(point.Destination), true
		}
	}
	return best, found
}

// hubFolder is the snapshot of a repository in the Hugging Face cache of the container.
func (c *instance) hubFolder(repo, revision string) string {
	cache := c.env("HF_HUB_CACHE")
	if cache == "" && c.env("HF_HOME") != "" {
		cache = c.env("HF_HOME") + "/hub"
	}
	if cache == "" {
		cache = "/root/.cache/huggingface/hub"
	}
	base := cache + "/models--" + strings.ReplaceAll(repo, "/", "--")
	if revision == "" {
		revision = "main"
	}
	if reference, ok := c.hostPath(base + "/refs/" + revision); ok {
		if commit, err := os.ReadFile(reference); err == nil {
			revision = strings.TrimSpace(string(commit))
		}
	}
	folder := base + "/snapshots/" + revision
	local, ok := c.hostPath(folder)
	if !ok {
		return ""
	}
	if _, err := os.Stat(local); err != nil {
		return ""
	}
	return folder
}

// checkModel looks at a model's folder as a loader does.
func checkModel(folder string) string {
	if _, err := os.Stat(filepath.Join(folder, "config.json")); err != nil {
		return fmt.Sprintf("OSError: Can't load the configuration of '%s': config.json is not there", folder)
	}
	shards, err := shardNames(folder)
	if err != nil {
		return "OSError: " + err.Error()
	}
	for _, shard := range shards {
		err := checkShard(filepath.Join(folder, shard))
		if errors.Is(err, os.ErrNotExist) {
			return "FileNotFoundError: No such file or directory: " + shard
		}
		if err != nil {
			return fmt.Sprintf("safetensors_rust.SafetensorError: Error while deserializing header: %v (%s)", err, shard)
		}
	}
	return ""
}

func shardNames(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "model.safetensors.index.json"))
	if errors.Is(err, os.ErrNotExist) {
		found, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
		if err == nil && len(found) == 0 {
			err = errors.New("Cannot find any model weights") //nolint:revive,staticcheck // vLLM's own words.
		}
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		return found, err
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("model.safetensors.index.json: %w", err)
	}
	seen := map[string]bool{}
	var names []string
	for _, shard := range index.WeightMap {
		if !seen[shard] {
			seen[shard] = true
			names = append(names, shard)
		}
	}
	return names, nil
}

// checkShard compares a safetensors file's size with its header.
func checkShard(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(text) < 8 {
		return errors.New("HeaderTooSmall")
	}
	size := binary.LittleEndian.Uint64(text)
	if size > uint64(len(text)-8) { //nolint:gosec // A length is not negative.
		return errors.New("InvalidHeaderLength")
	}
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(text[8:8+size], &header); err != nil {
		return fmt.Errorf("InvalidHeaderDeserialization: %w", err)
	}
	end := 0
	for _, tensor := range header {
		end = max(end, tensor.Offsets[1])
	}
	if end != len(text)-8-int(size) { //nolint:gosec // It was compared with the length above.
		return errors.New("MetadataIncompleteBuffer")
	}
	return nil
}
