package counts

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

// document is one file or folder, read once: the names in a folder, the values of a file of
// JSON, torch.save or numpy.save, or a text.
type document struct {
	path   string
	files  []string // of a folder, by name
	text   []byte   // of a file
	values []value
	keys   map[string]value // of the first value, where it is an object
	axes   Axes             // that are asked for
	broken error            // where the text begins like JSON and is none
}

// value is a part of a document: JSON text, or what a pickle or an array file holds.
type value struct {
	json  json.RawMessage
	item  any           // tensor.Dict, a list, tensor.Array, …
	torch *tensor.Torch // that holds the item's tensors
}

func openDocument(path string) (*document, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := input.ReadFile(path, maxFile)
		if err != nil {
			return nil, err
		}
		return newDocument(path, text)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	d := &document{path: path}
	for _, e := range entries { // sorted by name
		d.files = append(d.files, filepath.Join(path, e.Name()))
	}
	return d, nil
}

// newDocument opens the container of a file's content.
func newDocument(path string, text []byte) (*document, error) {
	d := &document{path: path, text: text}
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(trimmed) == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		torch, err := openTorch(text)
		if err != nil {
			return nil, err
		}
		d.values = []value{{item: torch.Root, torch: torch}}
	case bytes.HasPrefix(text, []byte(tensor.NumPyMagic)):
		array, err := tensor.ParseNumPy(text)
		if err != nil {
			return nil, err
		}
		d.values = []value{{item: array}}
	case len(text) > 8 && text[8] == '{' && text[7] == 0:
		return nil, errors.New(
			"this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case trimmed[0] == '{' || trimmed[0] == '[':
		d.values, d.broken = split(trimmed) // a log may begin with "[2026-11-22 …"
	}
	if len(d.values) > 0 {
		d.keys = d.values[0].keys()
	}
	return d, nil
}

func openTorch(text []byte) (*tensor.Torch, error) {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, err
	}
	return tensor.OpenTorch(archive.File)
}

// split splits a text into its JSON values, without a copy of them. A single list of objects is
// its items, as the lines of JSONL are: [{…}, {…}] → two values.
func split(text []byte) (values []value, err error) {
	dec := decoder(text)
	for {
		v, err := nextValue(dec, text)
		switch {
		case err == io.EOF && len(values) == 1 && isObjectList(text):
			return items(text)
		case err == io.EOF:
			return values, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(text))
		case err != nil:
			return nil, fmt.Errorf("value %d is not JSON: %s", len(values)+1, strings.TrimPrefix(err.Error(), "jsontext: "))
		}
		values = append(values, value{json: v})
	}
}

func isObjectList(text []byte) bool {
	return text[0] == '[' && bytes.TrimLeft(text[1:], " \t\r\n")[0] == '{'
}

// items are the values of a list.
func items(list []byte) (values []value, err error) {
	dec := decoder(list)
	_, err = dec.ReadToken()
	for err == nil && dec.PeekKind() != ']' {
		var v json.RawMessage
		v, err = nextValue(dec, list)
		values = append(values, value{json: v})
	}
	return values, err
}

// nextValue is the part of a text that the next value of its decoder takes.
func nextValue(dec *jsontext.Decoder, text []byte) (json.RawMessage, error) {
	v, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	return json.RawMessage(text[end-int64(len(v)) : end : end]), nil
}

func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// keys are the values of an object, by key; nil for anything else.
func (v value) keys() map[string]value {
	keys := map[string]value{}
	if dict, ok := v.item.(tensor.Dict); ok {
		for key, item := range dict {
			keys[key] = value{item: item, torch: v.torch}
		}
		return keys
	}
	if len(v.json) == 0 || v.json[0] != '{' {
		return nil
	}
	dec := decoder(v.json)
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() == '"' { // the text was found to be JSON before
		name, _ := dec.ReadToken()
		key := name.String()
		part, err := nextValue(dec, v.json)
		if err != nil {
			return keys
		}
		keys[key] = value{json: part}
	}
	return keys
}

// isList reports a list of JSON, a tensor or an array.
func (v value) isList() bool {
	_, object := v.item.(tensor.Dict)
	return v.item != nil && !object || len(v.json) > 0 && v.json[0] == '['
}

// array reads numbers in lists, or a tensor of integers.
func (v value) array() (tensor.Array, error) {
	if a, ok := v.item.(tensor.Array); ok {
		return a, nil
	}
	if v.torch != nil {
		return v.torch.Array(v.item)
	}
	return numbers(v.json)
}

// into decodes JSON.
func (v value) into(target any) error { return json.Unmarshal(v.json, target) }

// has reports an object with all of the keys.
func (d *document) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := d.keys[key]; !ok {
			return false
		}
	}
	return true
}

// isText reports a file that is neither JSON nor binary.
func (d *document) isText() bool { return d.text != nil && d.values == nil }

// named are the folder's files whose name matches.
func (d *document) named(name *regexp.Regexp) (paths []string) {
	for _, path := range d.files {
		if name.MatchString(filepath.Base(path)) {
			paths = append(paths, path)
		}
	}
	return paths
}
