package files

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
)

// maxIndex bounds, in bytes, an index that is read; the largest models have about 20 MB.
const maxIndex = 256 << 20

// checkIndex reads a *.safetensors.index.json: the shards it names, as paths below the folder whose
// part folder is, or what is wrong with it.
func checkIndex(content io.Reader, size int64, folder string) (shards []string, damage string, err error) {
	if size > maxIndex {
		return nil, fmt.Sprintf("index of %d bytes, over the limit of %d", size, maxIndex), nil
	}
	text, err := io.ReadAll(io.LimitReader(content, maxIndex))
	if err != nil {
		return nil, "", fmt.Errorf("read the index: %w", err)
	}
	shards, damage = ParseIndex(text, folder)
	return shards, damage, nil
}

// ParseIndex gives the shards that an index names, sorted, each once.
func ParseIndex(text []byte, folder string) (shards []string, damage string) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Sprintf("index of %d bytes is not usable JSON: %v", len(text), err)
	}
	if index.WeightMap == nil {
		return nil, fmt.Sprintf("index of %d bytes has no weight_map", len(text))
	}
	for name, shard := range index.WeightMap {
		full := path.Join(folder, shard)
		if shard == "" || path.IsAbs(shard) || !filepath.IsLocal(full) {
			return nil, fmt.Sprintf("index places tensor %q in %q, outside the folder", name, shard)
		}
		shards = append(shards, full)
	}
	slices.Sort(shards)
	return slices.Compact(shards), ""
}
