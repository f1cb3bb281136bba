package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Header encodes the start of a file: length, JSON, and spaces up to a multiple
// of 8 bytes. The tensors' bytes follow it in the order given; their Begin and
// End are ignored and assigned. Each tensor must begin at a multiple of its
// element size, which wide types first always gives: readers that map a file
// into memory need it.
func Header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	var fields []string
	field := func(key string, value any) error {
		object, err := json.Marshal(map[string]any{key: value}) // maps in the order of their keys
		if err == nil {
			fields = append(fields, string(object[1:len(object)-1]))
		}
		return err
	}
	if len(metadata) > 0 {
		if err := field(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	seen, end := map[string]bool{metadataKey: true}, int64(0)
	for _, t := range tensors {
		size, ok := byteSize(t.DType, t.Shape)
		switch {
		case seen[t.Name]:
			return nil, fmt.Errorf("writing tensor %q: the name is taken", t.Name)
		case !ok || end+size < end:
			return nil, fmt.Errorf("writing tensor %q: shape %v of %q is impossible", t.Name, t.Shape, t.DType)
		case end%t.DType.Size() != 0:
			return nil, fmt.Errorf(
				"writing tensor %q: want an offset that is a multiple of %d, have %d: put wider types first", t.Name,
				t.DType.Size(), end)
		}
		seen[t.Name] = true
		if err := field(t.Name, struct {
			DType   DType    `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, append([]int64{}, t.Shape...), [2]int64{end, end + size}}); err != nil {
			return nil, err
		}
		end += size
	}
	text := "{" + strings.Join(fields, ",") + "}"
	text += strings.Repeat(" ", -len(text)&7)
	if len(text) > maxHeader {
		return nil, fmt.Errorf("writing a header of %d bytes: want at most %d", len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// Write writes a whole file from tensors in memory, the widest types first and
// by name among equals. The keys of data are the names; each value must be as
// long as its tensor's shape says.
func Write(w io.Writer, metadata map[string]string, tensors []Tensor, data map[string][]byte) error {
	order := slices.Clone(tensors)
	slices.SortFunc(order, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), strings.Compare(a.Name, b.Name))
	})
	head, err := Header(metadata, order)
	if err != nil {
		return err
	}
	for _, t := range order {
		if size, _ := byteSize(t.DType, t.Shape); int64(len(data[t.Name])) != size {
			return fmt.Errorf("writing tensor %q: want %d bytes, have %d", t.Name, size, len(data[t.Name]))
		}
	}
	if len(data) != len(order) {
		return fmt.Errorf("writing %d tensors, have the data of %d (%v)", len(order), len(data),
			slices.Sorted(maps.Keys(data)))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range order {
		if _, err := w.Write(data[t.Name]); err != nil {
			return err
		}
	}
	return nil
}
