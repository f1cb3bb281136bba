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
	var fields []map[string]any
	if len(metadata) > 0 {
		fields = append(fields, map[string]any{metadataKey: metadata})
	}
	end := uint64(0)
	for _, t := range tensors {
		size, ok := byteSize(t.DType, t.Shape)
		if begin := end; !ok || begin%uint64(t.DType.Size()) != 0 || begin+size > 1<<63-1 {
			return nil, fmt.Errorf("writing tensor %v at byte %d: want a possible shape, and wider types first", t, begin)
		}
		fields = append(fields, map[string]any{t.Name: description{t.DType, t.Shape, []uint64{end, end + size}}})
		end += size
	}
	var parts [][]byte
	for _, field := range fields {
		object, err := json.Marshal(field, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		parts = append(parts, object[1:len(object)-1])
	}
	text := append(append([]byte("{"), bytes.Join(parts, []byte(","))...), '}')
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}
