package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// indexName is the index of a sharded checkpoint, as Hugging Face writes it.
const indexName = "model.safetensors.index.json"

// ReadTensor reads one floating-point tensor of a checkpoint. The path is a
// safetensors file, the index of a sharded checkpoint (JSON whose weight_map
// names the shard of each tensor), or a folder that holds
// model.safetensors.index.json or model.safetensors. Only the shard that holds
// the tensor is opened, and only beside or below its index.
func ReadTensor(path, name string) (values []float32, t Tensor, err error) {
	file, err := shard(path, name)
	if err != nil {
		return nil, Tensor{}, err
	}
	f, err := Open(file)
	if err != nil {
		return nil, Tensor{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t, err = f.Tensor(name); err != nil {
		return nil, Tensor{}, err
	}
	values, err = f.Float32s(name)
	return values, t, err
}

// shard is the safetensors file of the checkpoint at path that holds the tensor.
func shard(path, name string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		for _, inside := range []string{indexName, "model.safetensors"} {
			if inner, err := os.Stat(filepath.Join(path, inside)); err == nil && inner.Mode().IsRegular() {
				return shard(filepath.Join(path, inside), name)
			}
		}
		return "", fmt.Errorf("folder %q holds neither %s nor model.safetensors: name the file", path, indexName)
	}
	index, err := isIndex(path)
	if err != nil || !index {
		return path, err
	}
	if info.Size() > maxHeader {
		return "", fmt.Errorf("index %q: want at most %d bytes, have %d", path, maxHeader, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var content struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return "", fmt.Errorf("index %q: %w", path, err)
	}
	file, ok := content.WeightMap[name]
	switch {
	case len(content.WeightMap) == 0:
		return "", fmt.Errorf("index %q: want a weight_map from tensor to file, have none", path)
	case !ok:
		return "", fmt.Errorf("index %q: %w: want %q among %d tensors", path, ErrNoTensor, name, len(content.WeightMap))
	case !filepath.IsLocal(file):
		return "", fmt.Errorf("index %q: tensor %q lies in %q, want a file beside the index", path, name, file)
	}
	return filepath.Join(filepath.Dir(path), file), nil
}

// isIndex tells JSON from safetensors by content: a safetensors file begins
// with a length of at most 100 MB, so its eighth byte is zero, which JSON text
// never is.
func isIndex(path string) (is bool, err error) {
	f, _, err := OpenRegular(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var head [lengthBytes]byte
	n, err := io.ReadFull(f, head[:])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n > 0 && head[0] == '{' && (n < lengthBytes || head[lengthBytes-1] != 0), err
}
