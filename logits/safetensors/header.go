package safetensors

import (
	"bytes"
	"encoding/binary"

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

// Header encodes the start of a file of tensors whose types and shapes can be: length, JSON, and spaces up to a
// multiple of 8 bytes. The tensors' bytes follow it in the order given. Readers that map a file into memory need each
// tensor to begin at a multiple of its element size, which wide types first always gives.
func Header(metadata map[string]string, tensors []Tensor) []byte {
	fields, end := map[string]any{metadataKey: metadata}, uint64(0)
	for _, t := range tensors {
		size, _ := byteSize(t.DType, t.Shape)
		fields[t.Name] = description{t.DType, t.Shape, []uint64{end, end + size}}
		end += size
	}
	text, _ := json.Marshal(fields, json.Deterministic(true)) // numbers, and names in UTF-8: they always marshal
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
}
