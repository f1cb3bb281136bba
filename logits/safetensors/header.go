package safetensors

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/router/input"
)

// metadataKey is the one reserved name of a header: a map from string to string.
const metadataKey = "__metadata__"

// description is about how many bytes describe one tensor.
const description = 72

// header is the parsed JSON of a file.
type header struct {
	tensors  []Tensor // in file order
	byName   map[string]int
	metadata map[string]string
}

// parseHeader reads the JSON of a header and returns its tensors in the order of
// their bytes, and where the last one ends. Every byte in between belongs to
// exactly one tensor.
func parseHeader(file string, text []byte) (h header, end int64, err error) {
	h = header{byName: make(map[string]int, len(text)/description), metadata: map[string]string{}}
	p := &parser{file: file, json: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
	err = p.object(func(key []byte) error {
		name := string(key)
		if _, twice := h.byName[name]; twice {
			return p.twice(name)
		}
		h.byName[name] = len(h.tensors)
		if name == metadataKey {
			return p.metadata(h.metadata)
		}
		h.tensors = append(h.tensors, Tensor{Name: name})
		return p.tensor(&h.tensors[len(h.tensors)-1])
	})
	if err != nil {
		return h, 0, err
	}
	if _, err := p.json.ReadToken(); err != io.EOF {
		return h, 0, p.errorf("only spaces after the header's JSON", "more text")
	}
	delete(h.byName, metadataKey)
	inFile := func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), strings.Compare(a.Name, b.Name))
	}
	if !slices.IsSortedFunc(h.tensors, inFile) {
		slices.SortFunc(h.tensors, inFile)
		for i, t := range h.tensors {
			h.byName[t.Name] = i
		}
	}
	end, err = h.layOut(p)
	return h, end, err
}

// parser reads the JSON of a header. jsontext refuses text that is not UTF-8 and
// nesting deeper than 10,000; no string is longer than the header, whose length is
// bounded. Duplicate names are left to the maps that are filled anyway: two sets of
// the same names cost a third of the time of a long header.
type parser struct {
	file    string
	json    *jsontext.Decoder
	reading *Tensor // whose description is being read, for errors
}

// metadata reads a map from string to string.
func (p *parser) metadata(values map[string]string) error {
	return p.object(func(key []byte) error {
		name := string(key)
		if _, twice := values[name]; twice {
			return p.twice(name)
		}
		value, err := p.text()
		values[name] = string(value)
		return err
	})
}

// tensor reads the description of one tensor. Keys that the format does not
// define are passed over, as the reference reader does.
func (p *parser) tensor(t *Tensor) error {
	p.reading = t
	defer func() { p.reading = nil }()
	var offsets []int64
	err := p.object(func(key []byte) (err error) {
		switch key := string(key); {
		case key == "dtype" && t.DType == "":
			var name []byte
			name, err = p.text()
			t.DType = DType(name)
		case key == "shape" && t.Shape == nil:
			t.Shape, err = p.integers()
		case key == "data_offsets" && offsets == nil:
			offsets, err = p.integers()
		case key == "dtype" || key == "shape" || key == "data_offsets":
			err = p.twice(key)
		default:
			err = p.syntax(p.json.SkipValue())
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
	size, ok := byteSize(t.DType, t.Shape)
	switch {
	case t.DType.Size() == 0:
		return p.errorf("a supported dtype", "%.40q", t.DType)
	case t.Shape == nil:
		return p.errorf("a shape", "none")
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return p.errorf("data_offsets [begin, end] with begin ≤ end", "%v", offsets)
	case !ok:
		return p.errorf("a shape of less than 2^63 bytes", "%v of %s", t.Shape, t.DType)
	case size != offsets[1]-offsets[0]:
		return p.errorf(fmt.Sprintf("data_offsets of the %d bytes of shape %v of %s", size, t.Shape, t.DType),
			"%v, which hold %d", offsets, offsets[1]-offsets[0])
	}
	t.Begin, t.End = offsets[0], offsets[1]
	return nil
}

// layOut checks that the tensors, sorted by offset, follow each other without
// overlap or hole, and returns where the last one ends.
func (h header) layOut(p *parser) (end int64, err error) {
	for i, t := range h.tensors {
		switch {
		case t.Begin < end:
			return 0, p.errorf("tensors that do not overlap", "%.80q at %d and %.80q, which ends at %d", t.Name,
				t.Begin, h.tensors[i-1].Name, end)
		case t.Begin > end:
			return 0, p.errorf("tensors without bytes between them",
				"bytes %d to %d before tensor %.80q, which belong to none", end, t.Begin, t.Name)
		}
		end = t.End
	}
	return end, nil
}

// object reads an object, calling value after each key.
func (p *parser) object(value func(key []byte) error) error {
	if kind := p.json.PeekKind(); kind != '{' && kind != 0 {
		_, err := p.value('{', "an object")
		return err
	}
	if _, err := p.json.ReadToken(); err != nil {
		return p.syntax(err)
	}
	for p.json.PeekKind() != '}' {
		key, err := p.text()
		if err == nil {
			err = value(key)
		}
		if err != nil {
			return err
		}
	}
	_, err := p.json.ReadToken()
	return p.syntax(err)
}

// integers reads an array of whole numbers from 0 to 2⁶³ − 1.
func (p *parser) integers() ([]int64, error) {
	array, err := p.value('[', "an array of whole numbers")
	if err != nil {
		return nil, err
	}
	list := make([]int64, 0, 2)
	for array = bytes.TrimSpace(array[1 : len(array)-1]); len(array) > 0; {
		text, rest, _ := bytes.Cut(array, []byte{','})
		n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
		if err != nil {
			return nil, p.errorf("whole numbers from 0 to 2^63-1", "%.40q", text)
		}
		list, array = append(list, int64(n)), rest
	}
	return list, nil
}

// text reads a string, which is valid until the next call.
func (p *parser) text() ([]byte, error) {
	quoted, err := p.value('"', "a string")
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(quoted, []byte{'\\'}) {
		return quoted[1 : len(quoted)-1], nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}

// value reads a value of the kind.
func (p *parser) value(kind jsontext.Kind, want string) ([]byte, error) {
	value, err := p.json.ReadValue()
	if err != nil {
		return nil, p.syntax(err)
	}
	if value.Kind() != kind {
		return nil, p.errorf(want, "%.40q", []byte(value))
	}
	return value, nil
}

// syntax says where the text is not JSON.
func (p *parser) syntax(err error) error {
	if err == nil {
		return nil
	}
	if syntax := new(jsontext.SyntacticError); errors.As(err, &syntax) {
		return p.at(syntax.ByteOffset, "a header of valid JSON", strings.TrimPrefix(syntax.Error(), "jsontext: "))
	}
	return p.errorf("a header of valid JSON", "its end")
}

// twice is the error about a name that an object has already.
func (p *parser) twice(name string) error {
	return p.errorf("every name once", "%.80q twice", name)
}

// errorf is an error about what was read last.
func (p *parser) errorf(want, have string, args ...any) error {
	return p.at(p.json.InputOffset(), want, fmt.Sprintf(have, args...))
}

func (p *parser) at(offset int64, want, have string) error {
	if p.reading != nil {
		want = fmt.Sprintf("%s for tensor %.80q", want, p.reading.Name)
	}
	return fault(p.file, lengthBytes+offset, want, have)
}

// fault is an error about a byte of a file.
func fault(file string, offset int64, want, have string) error {
	return &input.Error{File: file, Position: fmt.Sprintf("byte %d", offset), Expected: want, Found: have}
}
