package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/moebalance/moebalance/router/input"
)

// indexName is the index of a sharded checkpoint, as Hugging Face writes it.
const indexName = "model.safetensors.index.json"

// ReadTensor reads one floating-point tensor of a checkpoint. The path is a
// safetensors file, the index of a sharded checkpoint (JSON whose weight_map
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
	text, err := readIndex(path)
	if err != nil || text == nil {
		return path, err
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

// readIndex reads the JSON of an index, nil for a safetensors file. They are told
// apart by content: a safetensors file begins with a length of at most 100 MB, so its
// eighth byte is zero, which JSON text never has.
func readIndex(path string) (text []byte, err error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := io.ReadAll(io.LimitReader(f, lengthBytes))
	if err != nil || len(head) == 0 || head[0] != '{' || len(head) == lengthBytes && head[lengthBytes-1] == 0 {
		return nil, err
	}
	if info.Size() > maxHeader {
		return nil, &input.Error{File: path, Expected: fmt.Sprintf("an index of at most %d bytes", maxHeader),
			Found: strconv.FormatInt(info.Size(), 10)}
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxHeader))
	return append(head, rest...), err
}
