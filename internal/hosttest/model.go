package hosttest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// ModelShards is how many safetensors shards [Host.WriteModel] makes.
const ModelShards = 4

// ShardName is the name of a model's shard, counted from 1.
func ShardName(number int) string {
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", number, ModelShards)
}

// WriteModel makes a small but well-formed model in a folder of the host ("/models/tiny"): config,
// tokenizer, index and four safetensors shards of 1 KiB of tensors. It is the same on every call.
func (h *Host) WriteModel(folder string) {
	h.fleet.t.Helper()
	files, err := modelFiles()
	if err == nil {
		err = h.byHand(func() error { return writeFiles(h.Path(folder), files) })
	}
	if err != nil {
		h.fleet.t.Fatalf("hosttest: write a model to %s:%s: %v", h.name, folder, err)
	}
}

func modelFiles() (map[string][]byte, error) {
	files := map[string][]byte{
		"config.json": []byte(`{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 16, ` +
			`"num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, ` +
			`"vocab_size": 32, "max_position_embeddings": 256, "torch_dtype": "bfloat16"}` + "\n"),
		"tokenizer.json": []byte(`{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"blue": 0, "sky": 1}, ` +
			`"unk_token": "blue"}}` + "\n"),
	}
	weightMap := map[string]string{}
	total := 0
	for number := 1; number <= ModelShards; number++ {
		name := fmt.Sprintf("model.layers.%d.mlp.weight", number-1)
		tensor := make([]byte, 1024)
		for i := range tensor {
			tensor[i] = byte(i * number % 256)
		}
		header, err := json.Marshal(map[string]any{
			name: map[string]any{"dtype": "BF16", "shape": []int{16, 32}, "data_offsets": []int{0, len(tensor)}},
		})
		if err != nil {
			return nil, err
		}
		shard := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		files[ShardName(number)] = append(append(shard, header...), tensor...)
		weightMap[name] = ShardName(number)
		total += len(tensor)
	}
	index, err := json.MarshalIndent(map[string]any{
		"metadata": map[string]any{"total_size": total}, "weight_map": weightMap,
	}, "", "  ")
	files["model.safetensors.index.json"] = index
	return files, err
}

func writeFiles(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file of the host by hand.
func (h *Host) WriteFile(path string, content []byte) {
	h.fleet.t.Helper()
	h.touch("write", path, func(local string) error {
		return writeFiles(filepath.Dir(local), map[string][]byte{filepath.Base(local): content})
	})
}

// MakeFolder makes a folder of the host by hand.
func (h *Host) MakeFolder(path string) {
	h.fleet.t.Helper()
	h.touch("make", path, func(local string) error { return os.MkdirAll(local, 0o750) })
}

// TruncateFile cuts a file of the host to a size in bytes, as a copy does that broke off.
func (h *Host) TruncateFile(path string, size int64) {
	h.fleet.t.Helper()
	h.touch("truncate", path, func(local string) error { return os.Truncate(local, size) })
}

// DeleteFile removes a file of the host, or a folder with all in it.
func (h *Host) DeleteFile(path string) {
	h.fleet.t.Helper()
	h.touch("delete", path, func(local string) error {
		if _, err := os.Lstat(local); err != nil {
			return err
		}
		return os.RemoveAll(local)
	})
}

func (h *Host) touch(verb, path string, change func(local string) error) {
	h.fleet.t.Helper()
	if err := h.byHand(func() error { return change(h.Path(path)) }); err != nil {
		h.fleet.t.Fatalf("hosttest: %s %s:%s: %v", verb, h.name, path, err)
	}
}
