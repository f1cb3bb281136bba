package counts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"

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
	keys   map[string]value // of the first value
	more   bool             // values follow the first
	broken error            // where the text begins like JSON and is none
}

func openDocument(path string) (*document, error) {
	info, err := input.Stat(path)
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
		err = errors.New("the file is empty: write it again")
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
	if d.keys = map[string]value{}; err == nil && !d.first.isList() {
		var parts row
		if parts, err = d.first.parts(); d.first.isObject() {
			for _, part := range parts {
				d.keys[part.name] = part.value
			}
		}
	}
	return d, err
}

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
		for {
			text, err := dec.ReadValue()
			switch {
			case err == io.EOF:
				return
			case errors.Is(err, io.ErrUnexpectedEOF):
				err = fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(d.text))
			case err != nil:
				err = d.notJSON(err)
			}
			end := int(dec.InputOffset())
			v := value{json: d.text[end-len(text) : end : end]}
			if err != nil || !v.holds("[") || !v.holdsParts("{") {
				if !yield(v, err) || err != nil {
					return
				}
				continue
			}
			items, err := v.parts()
			for _, item := range items {
				if !yield(item.value, nil) {
					return
				}
			}
			if err != nil && !yield(v, err) {
				return
			}
		}
	}
}

// notJSON says where the text is no JSON, and by what: `[[NaN,1]]` → line 1: NaN is no JSON number.
func (d *document) notJSON(err error) error {
	bad := (*jsontext.SyntacticError)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	at := min(int(bad.ByteOffset), len(d.text))
	line, found := 1+bytes.Count(d.text[:at], []byte("\n")), notNumber.Find(d.text[at:])
	if len(found) > 0 {
		return fmt.Errorf("line %d: %s is no JSON number", line, found)
	}
	return fmt.Errorf("line %d is no JSON: it goes wrong at %.20q", line, d.text[at:])
}

// notNumber is what programs write for a number that JSON does not have.
var notNumber = regexp.MustCompile(`(?i)^[-+]?(?:nan|inf(?:inity)?)\b`)

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
