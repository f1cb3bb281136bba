package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

const (
	// lengthBytes is the header length in front of everything.
	lengthBytes = 8
	// maxHeader bounds the header, as the reference reader does
	// (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
	maxHeader = 100_000_000
)

// Parse reads the tensors of a file in the order of their bytes, which they share with it; name is for errors. The
// header must account for every byte exactly once.
//
// The decoder refuses names that come twice, text that is not UTF-8 and nesting deeper than 10,000. Metadata and keys
// that the format does not define are passed over.
func Parse(name string, file []byte) (tensors []Tensor, err error) {
	size := uint64(len(file))
	if size < lengthBytes {
		return nil, truncated(name, size, "the length of a header")
	}
	n := binary.LittleEndian.Uint64(file)
	data := lengthBytes + n
	switch {
	case n > maxHeader:
		return nil, &input.Error{File: name, Position: "byte 0", Found: fmt.Sprint(n),
			Expected: fmt.Sprintf("a safetensors header of at most %d bytes", maxHeader)}
	case size < data:
		return nil, truncated(name, size, fmt.Sprintf("a header up to byte %d", data))
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(file[lengthBytes:data], &fields); err != nil {
		return nil, &input.Error{File: name, Expected: "a header of valid JSON",
			Found: strings.TrimPrefix(err.Error(), "jsontext: ")}
	}
	delete(fields, metadataKey)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		t, err := parseTensor(file[data:], key, fields[key])
		if err != nil {
			err.File = name
			return nil, err
		}
		tensors = append(tensors, t)
	}
	slices.SortStableFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	end := uint64(0)
	for _, t := range tensors {
		if t.begin != end {
			return nil, &input.Error{File: name, Position: fmt.Sprintf("tensor %.80q", t.Name),
				Expected: fmt.Sprintf("tensors without overlap and without bytes between them, the next from byte %d on", end),
				Found:    fmt.Sprintf("%d to %d", t.begin, t.end)}
		}
		end = t.end
	}
	switch {
	case end > size-data:
		return nil, truncated(name, size, fmt.Sprintf("%d tensor bytes, as the header says", end))
	case end < size-data:
		return nil, &input.Error{File: name, Position: fmt.Sprintf("byte %d", data+end),
			Expected: "the end of the file after the last tensor", Found: quantity.Count(int(size-data-end), "more byte")}
	}
	return tensors, nil
}

// truncated is the error about a file that ends at a byte.
func truncated(name string, end uint64, want string) error {
	return &input.Error{File: name, Position: fmt.Sprintf("byte %d", end), Expected: want, Found: "the end of the file"}
}

// parseTensor reads what a header says of a tensor, whose shape must need its bytes exactly.
func parseTensor(data []byte, name string, text jsontext.Value) (Tensor, *input.Error) {
	var d description
	err := json.Unmarshal(text, &d)
	t := Tensor{Name: name, DType: d.DType, Shape: d.Shape}
	size, ok := byteSize(d.DType, d.Shape)
	wrong := input.Error{Position: fmt.Sprintf("tensor %.80q", name), Found: fmt.Sprintf("%.80s", text)}
	switch {
	case err != nil:
		wrong.Expected = "dtype, shape and data_offsets"
	case d.DType.Size() == 0:
		wrong.Expected, wrong.Found = "a supported dtype", fmt.Sprintf("%.40q", d.DType)
	case d.Shape == nil:
		wrong.Expected, wrong.Found = "a shape", "none"
	case len(d.Offsets) != 2 || d.Offsets[0] > d.Offsets[1]:
		wrong.Expected = "data_offsets [begin, end] with begin ≤ end"
	case !ok || size != d.Offsets[1]-d.Offsets[0]:
		wrong.Expected = fmt.Sprintf("data_offsets of the %d bytes of shape %v of %s", size, t.Shape, t.DType)
	default:
		if t.begin, t.end = d.Offsets[0], d.Offsets[1]; t.end <= uint64(len(data)) {
			t.Data = data[t.begin:t.end]
		}
		return t, nil
	}
	return t, &wrong
}
