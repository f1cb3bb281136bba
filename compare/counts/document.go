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
	files  []string // of a folder, by name
	text   []byte   // of a file
	root   any      // the tree of a binary file, or of the first record of JSON; nil for another text
	binary string   // the container of a binary file, "" for a text
	broken error    // where the text begins like JSON and is none
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

// The containers of binary files.
const (
	torchFile       = "PyTorch tensor"
	numpyFile       = "NumPy array"
	safetensorsFile = "safetensors file"
)

// newDocument opens the container of a file's content.
func newDocument(path string, text []byte) (d *document, err error) {
	d = &document{path: path, text: bytes.TrimSpace(text)}
	switch {
	case len(d.text) == 0:
		err = errors.New("the file is empty: write it again")
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		d.binary = torchFile
		d.root, err = tensor.OpenTorch(text)
	case bytes.HasPrefix(text, []byte(tensor.NumPyMagic)):
		d.binary = numpyFile
		a, failed := tensor.ParseNumPy(text)
		d.root, err = tensor.Stored(func() (tensor.Array, error) { return a, nil }), failed
	case len(text) > 8 && text[8] == '{' && text[7] == 0:
		d.binary = safetensorsFile
		d.root, err = tensor.OpenSafetensors(path, text)
	case d.text[0] == '{' || d.text[0] == '[':
		n := 0
		for v, err := range d.values() {
			if n++; n == 1 {
				d.root = v
			}
			if err != nil { // a log may begin with "[2026-11-22 …" or "[0] "
				d.root, d.broken = nil, err
			}
			if n > 1 {
				break
			}
		}
	default:
		d.text = text // with the end of its last line
	}
	return d, err
}

// values are the records of the document: its tree, or the values of JSON, of a list of objects its items, as the
// lines of JSONL are: [{…}, {…}] → two values.
func (d *document) values() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		if d.binary != "" {
			yield(d.root, nil)
			return
		}
		for dec := newDecoder(d.text); ; dec.left = maxParts {
			var v any
			var err error
			for err == nil && (dec.PeekKind() == ']' || dec.StackDepth() == 0 && dec.ofObjects()) {
				_, err = dec.ReadToken()
			}
			if err == nil {
				v, err = dec.decode()
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				v, err = nil, d.notJSON(err)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// notJSON says where the text is no JSON, and by what: `[[NaN,1]]` → line 1 is no JSON: it goes wrong at "NaN,1]]".
func (d *document) notJSON(err error) error {
	bad := (*jsontext.SyntacticError)(nil)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(d.text))
	case !errors.As(err, &bad):
		return err
	}
	at := min(int(bad.ByteOffset), len(d.text))
	return fmt.Errorf("line %d is no JSON: it goes wrong at %.20q", 1+bytes.Count(d.text[:at], []byte("\n")), d.text[at:])
}

// isText reports a text that is no JSON; a text has no byte of zero.
func (d *document) isText() bool {
	return d.text != nil && d.root == nil && d.binary == "" && bytes.IndexByte(d.text[:min(len(d.text), 4096)], 0) < 0
}

// named are the folder's files whose name matches.
func (d *document) named(name *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(d.files), func(path string) bool {
		return !name.MatchString(filepath.Base(path))
	})
}
