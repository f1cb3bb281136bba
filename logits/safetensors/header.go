package safetensors

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// metadataKey is the one reserved name of a header: a map from string to string.
const metadataKey = "__metadata__"

// header is the parsed JSON of a file.
type header struct {
	tensors  []Tensor // in file order
	metadata map[string]string
}

// parseHeader reads the JSON of a header and returns its tensors in the order of
// their bytes, and where the last one ends. Every byte in between belongs to
// exactly one tensor.
func parseHeader(name string, text []byte) (h header, end int64, err error) {
	p := &parser{name: name, text: string(text)}
	if !utf8.ValidString(p.text) {
		return h, 0, p.errorf("the header is not UTF-8")
	}
	h.metadata = map[string]string{}
	err = p.object("header", func(key string) error {
		if key == metadataKey {
			return p.object(metadataKey, func(key string) (err error) {
				h.metadata[key], err = p.string(metadataKey + " value")
				return err
			})
		}
		h.tensors = append(h.tensors, Tensor{Name: key})
		return p.tensor(&h.tensors[len(h.tensors)-1])
	})
	if err != nil {
		return h, 0, err
	}
	if p.space(); p.at < len(p.text) {
		return h, 0, p.errorf("want only spaces after the header's JSON")
	}
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), strings.Compare(a.Name, b.Name))
	})
	end, err = h.layOut(p)
	return h, end, err
}

// tensor reads the description of one tensor. Keys that the format does not
// define are passed over, as the reference reader does.
func (p *parser) tensor(t *Tensor) error {
	p.reading = t
	defer func() { p.reading = nil }()
	var offsets []int64
	err := p.object("description", func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			s, err = p.string("dtype")
			t.DType = DType(s)
		case "shape":
			t.Shape, err = p.integers("shape")
		case "data_offsets":
			offsets, err = p.integers("data_offsets")
		default:
			_, err = p.value()
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.place(t, offsets)
}

// place gives a tensor its bytes, which its shape must need exactly.
func (p *parser) place(t *Tensor, offsets []int64) error {
	switch {
	case t.DType.Size() == 0:
		return p.errorf("unsupported dtype %q", t.DType)
	case t.Shape == nil:
		return p.errorf("has no shape")
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return p.errorf("want data_offsets [begin, end] with begin ≤ end, have %v", offsets)
	}
	t.Begin, t.End = offsets[0], offsets[1]
	size, ok := byteSize(t.DType, t.Shape)
	if !ok {
		return p.errorf("shape %v of %s overflows", t.Shape, t.DType)
	}
	if size != t.Bytes() {
		return p.errorf("shape %v of %s needs %d bytes, data_offsets %v hold %d", t.Shape, t.DType, size, offsets, t.Bytes())
	}
	return nil
}

// layOut checks that the tensors, sorted by offset, follow each other without
// overlap or hole, and returns where the last one ends.
func (h header) layOut(p *parser) (end int64, err error) {
	for i, t := range h.tensors {
		switch {
		case t.Begin < end:
			return 0, p.errorf("tensor %q at %d overlaps tensor %q, which ends at %d", t.Name, t.Begin, h.tensors[i-1].Name, end)
		case t.Begin > end:
			return 0, p.errorf("bytes %d to %d before tensor %q belong to no tensor", end, t.Begin, t.Name)
		}
		end = t.End
	}
	return end, nil
}
