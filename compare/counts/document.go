package counts

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

// document is one file or folder: the names in a folder, or what the container of a file holds.
type document struct {
	path   string
	files  []string // of a folder, by name
	text   []byte   // of a file
	first  []value  // the first two values of a file of JSON, torch.save or numpy.save
	keys   object   // of the first value, where it is an object
	axes   Axes     // that are asked for
	broken error    // where the text begins like JSON and is none
}

// object is a JSON object or a dictionary, its keys in the order of the text.
type object []field

type field struct {
	key string
	value
}

// get is the last value of a key, none where there is none.
func (o object) get(key string) (v value) {
	for _, f := range o {
		if f.key == key {
			v = f.value
		}
	}
	return v
}

// has reports an object with all of the keys.
func (o object) has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		return !slices.ContainsFunc(o, func(f field) bool { return f.key == key })
	})
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
	d := &document{path: path}
	for _, e := range entries { // sorted by name
		d.files = append(d.files, filepath.Join(path, e.Name()))
	}
	return d, err
}

// newDocument opens the container of a file's content.
func newDocument(path string, text []byte) (*document, error) {
	d := &document{path: path, text: text}
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(trimmed) == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return nil, err
		}
		torch, err := tensor.OpenTorch(archive.File)
		if err != nil {
			return nil, err
		}
		d.first = []value{{item: torch.Root, torch: torch}}
	case bytes.HasPrefix(text, []byte(tensor.NumPyMagic)):
		array, err := tensor.ParseNumPy(text)
		if err != nil {
			return nil, err
		}
		d.first = []value{{item: array}}
	case len(text) > 8 && text[8] == '{' && text[7] == 0:
		return nil, errors.New(
			"this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case trimmed[0] == '{' || trimmed[0] == '[':
		d.text = trimmed
		for v, err := range d.values() {
			if err != nil { // a log may begin with "[2026-11-22 …"
				d.first, d.broken = nil, err
				break
			}
			if d.first = append(d.first, v); len(d.first) == 2 {
				break
			}
		}
	}
	if len(d.first) > 0 {
		d.keys = d.first[0].keys()
	}
	return d, d.keys.checked()
}

// values are the values of the document, of JSON without a copy of them. A list of objects is its
// items, as the lines of JSONL are: [{…}, {…}] → two values.
func (d *document) values() iter.Seq2[value, error] {
	return func(yield func(value, error) bool) {
		if len(d.first) > 0 && d.first[0].json == nil {
			yield(d.first[0], nil)
			return
		}
		dec := decoder(d.text)
		for n := 1; ; n++ {
			v, err := nextItem(dec, d.text)
			switch {
			case err == io.EOF:
				return
			case errors.Is(err, io.ErrUnexpectedEOF):
				err = fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(d.text))
			case err != nil:
				err = fmt.Errorf("value %d is not JSON: %s", n, strings.TrimPrefix(err.Error(), "jsontext: "))
			}
			if !yield(value{json: v}, err) || err != nil {
				return
			}
		}
	}
}

// nextItem is the next value of a text, within lists of objects the next object.
func nextItem(dec *jsontext.Decoder, text []byte) (json.RawMessage, error) {
	for {
		rest := bytes.TrimLeft(text[dec.InputOffset():], ", \t\r\n")
		opens := bytes.HasPrefix(rest, []byte("[")) && bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t\r\n"), []byte("{"))
		if kind := dec.PeekKind(); !(kind == '[' && opens && dec.StackDepth() == 0) && !(kind == ']' && dec.StackDepth() == 1) {
			return nextValue(dec, text)
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
	}
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

// only is the value of a document that holds one.
func (d *document) only() (value, error) {
	if len(d.first) != 1 {
		return value{}, errors.New("want one list or object, have several values")
	}
	return d.first[0], nil
}

// maxKeys bounds an object, a field of which takes ten times its text.
const maxKeys = 1 << 20

// checked refuses an object with too many keys, of which not all were read.
func (o object) checked() error {
	if len(o) > maxKeys {
		return fmt.Errorf("want objects of at most %d keys, have more", maxKeys)
	}
	return nil
}

// keys are what an object holds, or more than maxKeys of it; nil for anything else.
func (v value) keys() (keys object) {
	if dict, ok := v.item.(tensor.Dict); ok {
		for _, key := range slices.Sorted(maps.Keys(dict)) {
			keys = append(keys, field{key, value{item: dict[key], torch: v.torch}})
		}
		return keys
	}
	if len(v.json) == 0 || v.json[0] != '{' {
		return nil
	}
	dec := decoder(v.json)
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' && len(keys) <= maxKeys { // the text was found to be JSON before
		var name jsontext.Token
		if name, err = dec.ReadToken(); err == nil {
			f := field{key: name.String()}
			f.json, err = nextValue(dec, v.json)
			keys = append(keys, f)
		}
	}
	return keys
}

// items are the parts of a list of lists or objects; none of any other list.
func (v value) items() iter.Seq[value] {
	return func(yield func(value) bool) {
		if list, ok := v.item.(*[]any); ok {
			for _, item := range *list {
				if !yield(value{item: item, torch: v.torch}) {
					return
				}
			}
		}
		if len(v.json) == 0 || v.json[0] != '[' || !bytes.ContainsAny(bytes.TrimLeft(v.json[1:], " \t\r\n")[:1], "[{") {
			return
		}
		dec := decoder(v.json)
		_, err := dec.ReadToken()
		for err == nil && dec.PeekKind() != ']' {
			var part value
			if part.json, err = nextValue(dec, v.json); err == nil && !yield(part) {
				return
			}
		}
	}
}

func (v value) isNull() bool { return v.item == nil && (len(v.json) == 0 || v.json[0] == 'n') }

// isNested reports a list or an object.
func (v value) isNested() bool {
	_, list := v.item.(*[]any)
	_, dict := v.item.(tensor.Dict)
	return list || dict || len(v.json) > 0 && (v.json[0] == '{' || v.json[0] == '[')
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

// matrix reads numbers of [layers, copies].
func (v value) matrix() (tensor.Array, error) {
	a, err := v.array()
	if err == nil && (len(a.Shape) != 2 || a.Shape[0] < 1 || a.Shape[0] > maxLayers || a.Shape[1] > maxExperts) {
		err = fmt.Errorf("want [layers, copies], have %v", a.Shape)
	}
	return a, err
}

// whole is an integer; not ok for anything else.
func (v value) whole() (n int64, ok bool) {
	if n, ok = v.item.(int64); ok || len(v.json) == 0 {
		return n, ok
	}
	n, err := whole(v.json)
	return n, err == nil
}

// word is a text of JSON, empty for anything else.
func (v value) word() (text string) {
	if json.Unmarshal(v.json, &text) != nil {
		return ""
	}
	return text
}

func (d *document) has(keys ...string) bool { return d.keys.has(keys...) }

// mentions reports a file of JSON with a key in its first two values.
func (d *document) mentions(key *regexp.Regexp) bool {
	return slices.ContainsFunc(d.first, func(v value) bool { return key.Match(v.json) })
}

// isText reports a text that is no JSON; a text has no byte of zero.
func (d *document) isText() bool {
	return d.text != nil && d.first == nil && bytes.IndexByte(d.text[:min(len(d.text), 4096)], 0) < 0
}

func (d *document) isArray() bool { return len(d.first) > 0 && d.first[0].isList() }

// named are the folder's files whose name matches.
func (d *document) named(name *regexp.Regexp) (paths []string) {
	for _, path := range d.files {
		if name.MatchString(filepath.Base(path)) {
			paths = append(paths, path)
		}
	}
	return paths
}
