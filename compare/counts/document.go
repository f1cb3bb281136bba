package counts

import (
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
	files  []string         // of a folder, by name
	text   []byte           // of a file
	first  value            // of JSON, torch.save or numpy.save
	keys   map[string]value // of the first value, at most maxKeys
	more   bool             // values follow the first
	broken error            // where the text begins like JSON and is none
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
func newDocument(path string, text []byte) (d *document, err error) {
	d = &document{path: path, text: text}
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(trimmed) == 0:
		err = errors.New("the file is empty")
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		d.first.item, err = tensor.OpenTorch(text)
	case bytes.HasPrefix(text, []byte(tensor.NumPyMagic)):
		d.first.item, err = tensor.ParseNumPy(text)
	case len(text) > 8 && text[8] == '{' && text[7] == 0:
		err = errors.New("this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case trimmed[0] == '{' || trimmed[0] == '[':
		d.text = trimmed
		for v, err := range d.values() {
			if d.more = d.first.json != nil; err != nil { // a log may begin with "[2026-11-22 …" or "[0] "
				d.first, d.broken = value{}, err
			} else if !d.more {
				d.first = v
				continue
			}
			break
		}
	}
	if d.keys = map[string]value{}; !d.first.isList() {
		for key, part := range d.first.parts() {
			if d.keys[key] = part; len(d.keys) == maxKeys {
				break
			}
		}
	}
	return d, err
}

// maxKeys bounds what of an object is kept, a field of which takes ten times its text.
const maxKeys = 1 << 20

// has reports a document that begins with an object of all these keys.
func (d *document) has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, ok := d.keys[key]; return !ok })
}

// values are the values of the document, of JSON without a copy of them. A list of objects is its
// items, as the lines of JSONL are: [{…}, {…}] → two values.
func (d *document) values() iter.Seq2[value, error] {
	return func(yield func(value, error) bool) {
		if d.first.item != nil {
			yield(d.first, nil)
			return
		}
		dec := jsontext.NewDecoder(bytes.NewBuffer(d.text), jsontext.AllowDuplicateNames(true),
			jsontext.AllowInvalidUTF8(true))
		for n := 1; ; n++ {
			text, err := dec.ReadValue()
			switch {
			case err == io.EOF:
				return
			case errors.Is(err, io.ErrUnexpectedEOF):
				err = fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(d.text))
			case err != nil:
				err = fmt.Errorf("value %d is not JSON: %s", n, strings.TrimPrefix(err.Error(), "jsontext: "))
			}
			end := int(dec.InputOffset())
			v := value{json: d.text[end-len(text) : end : end]}
			if err != nil || !v.holds("[") || !v.holdsParts("{") {
				if !yield(v, err) || err != nil {
					return
				}
				continue
			}
			for _, item := range v.parts() {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// isText reports a text that is no JSON; a text has no byte of zero.
func (d *document) isText() bool {
	return d.text != nil && d.first.none() && bytes.IndexByte(d.text[:min(len(d.text), 4096)], 0) < 0
}

// named are the folder's files whose name matches.
func (d *document) named(name *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(d.files), func(path string) bool {
		return !name.MatchString(filepath.Base(path))
	})
}

// value is a part of a document: valid JSON text, or an item of a pickle or an array.
type value struct {
	json json.RawMessage
	item any // tensor.Dict, *[]any, tensor.Array, tensor.Stored, int64, …
}

// none reports no value, or null.
func (v value) none() bool { return v.item == nil && (len(v.json) == 0 || v.json[0] == 'n') }

// holds reports JSON that begins with one of the bytes.
func (v value) holds(first string) bool {
	return len(v.json) > 0 && strings.IndexByte(first, v.json[0]) >= 0
}

// holdsParts reports a list whose first item begins with one of the bytes.
func (v value) holdsParts(first string) bool {
	return len(v.json) > 0 && value{json: bytes.TrimLeft(v.json[1:], " \t\r\n")}.holds(first)
}

// isNested reports a list or an object.
func (v value) isNested() bool {
	_, list := v.item.(*[]any)
	_, dict := v.item.(tensor.Dict)
	return list || dict || v.holds("{[")
}

// isList reports a list of JSON, a tensor or an array.
func (v value) isList() bool {
	_, object := v.item.(tensor.Dict)
	return v.item != nil && !object || v.holds("[")
}

// parts are the fields of an object, or the items of a list with keys "", but for lists of numbers.
func (v value) parts() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		switch item := v.item.(type) {
		case tensor.Dict:
			for _, key := range slices.Sorted(maps.Keys(item)) {
				if !yield(key, value{item: item[key]}) {
					return
				}
			}
		case *[]any:
			for _, part := range *item {
				if !yield("", value{item: part}) {
					return
				}
			}
		}
		object := v.holds("{")
		if !object && !(v.holds("[") && v.holdsParts("[{")) {
			return
		}
		for rest := next(v.json[1:]); rest[0] != '}' && rest[0] != ']'; rest = next(rest) {
			key, end := "", 0
			if object {
				end = past(rest)
				key, rest = value{json: rest[:end]}.word(), next(rest[end:])
			}
			if end = past(rest); !yield(key, value{json: rest[:end:end]}) {
				return
			}
			rest = rest[end:]
		}
	}
}

// next is a text from its next value on, or from the end of the list or object that it is in.
func next(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n,:") }

// past is where the first value of valid JSON ends: `{"a": 1}, 2` → 8.
func past(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth <= 0 {
				return i + 1 + depth
			}
		case depth == 0 && (b == ',' || b == ':' || b <= ' '):
			return i
		}
	}
	return len(text)
}

// array reads numbers in lists, or a tensor of integers.
func (v value) array() (tensor.Array, error) {
	switch item := v.item.(type) {
	case nil:
		return numbers(v.json)
	case tensor.Array:
		return item, nil
	case tensor.Stored:
		return item()
	}
	return tensor.Array{}, errors.New("want a tensor")
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
	if n := len(v.json); v.holds(`"`) && bytes.IndexByte(v.json, '\\') < 0 {
		return string(v.json[1 : n-1])
	}
	_ = json.Unmarshal(v.json, &text) // which leaves it empty
	return text
}
