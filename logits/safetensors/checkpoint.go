package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/router/input"
)

// indexName is the index of a sharded checkpoint, as Hugging Face writes it.
const indexName = "model.safetensors.index.json"

// ReadTensor reads one floating-point tensor of a checkpoint. The path is a
// safetensors file, the index of a sharded checkpoint (NAME.json whose weight_map
// names the shard of each tensor), or a folder that holds
// model.safetensors.index.json or model.safetensors. Only the shard that holds
// the tensor is opened, and only beside or below its index.
func ReadTensor(path, name string) ([]float32, error) {
	file, err := shard(path, name)
	if err != nil {
		return nil, err
	}
	f, err := Open(file)
	if err != nil {
		return nil, err
	}
	values, err := f.Float32s(name)
	return values, errors.Join(err, f.Close())
}

// shard is the safetensors file of the checkpoint at path that holds the tensor.
func shard(path, name string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, inside := range []string{indexName, "model.safetensors"} {
			if inner, err := os.Stat(filepath.Join(path, inside)); err == nil && inner.Mode().IsRegular() {
				return shard(filepath.Join(path, inside), name)
			}
		}
		return "", &input.Error{File: path, Expected: indexName + " or model.safetensors in the folder",
			Found: "neither", Try: "name the file"}
	}
	if filepath.Ext(path) != ".json" {
		return path, nil
	}
	text, err := input.ReadFile(path, maxHeader)
	if err != nil {
		return "", err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return "", &input.Error{File: path, Expected: "the index of a checkpoint as JSON", Err: err}
	}
	file, ok := index.WeightMap[name]
	switch {
	case len(index.WeightMap) == 0:
		return "", &input.Error{File: path, Expected: "a weight_map from tensor to file", Found: "none"}
	case !ok:
		return "", fmt.Errorf("index %q: %w: want %q among %d tensors", path, ErrNoTensor, name, len(index.WeightMap))
	case !filepath.IsLocal(file):
		return "", &input.Error{File: path, Expected: "every file beside the index",
			Found: fmt.Sprintf("tensor %.80q in %.80q", name, file)}
	}
	return filepath.Join(filepath.Dir(path), file), nil
}
