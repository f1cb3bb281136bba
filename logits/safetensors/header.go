package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-json-experiment/json"
)

// metadataKey is the one reserved name of a header: a map from string to string.
const metadataKey = "__metadata__"

// description is the JSON of one tensor.
type description struct {
	DType   DType    `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// Header encodes the start of a file: length, JSON, and spaces up to a multiple
// of 8 bytes. The tensors' bytes follow it in the order given. Each tensor must begin at a multiple of its
// element size, which wide types first always gives: readers that map a file
// into memory need it.
func Header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	fields, end := map[string]any{metadataKey: metadata}, uint64(0)
	for _, t := range tensors {
		size, ok := byteSize(t.DType, t.Shape)
		if !ok || end%uint64(t.DType.Size()) != 0 || end+size > 1<<63-1 {
			return nil, fmt.Errorf("writing tensor %q at byte %d: want a possible shape, and wider types first", t.Name, end)
		}
		fields[t.Name] = description{t.DType, t.Shape, []uint64{end, end + size}}
		end += size
	}
	text, err := json.Marshal(fields, json.Deterministic(true))
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), err
}
