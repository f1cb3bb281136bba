package counts

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
)

// document is one file or folder: the names in a folder, or what the container of a file holds.
type document struct {
	path   string
	files  []string           // of a folder, by name
	text   []byte             // of a file
	binary string             // the container of a binary file, "" for a text
	root   any                // the tree of a binary file or the first record of JSON, nil for another text
	next   func() (any, bool) // reads the records behind it
	broken error              // where the text begins like JSON and is none
}

// oneRank is the container of what one rank of TensorRT-LLM counted.
const oneRank = "safetensors file"

func openDocument(path string) *document {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return newDocument(path, must(input.ReadFile(path, maxFile)))
	}
	d := &document{path: path}
	for _, e := range must(os.ReadDir(path)) { // sorted by name
		d.files = append(d.files, filepath.Join(path, e.Name()))
	}
	return d
}

// newDocument opens the container of a file's content.
func newDocument(path string, text []byte) *document {
	d := &document{path: path, text: bytes.TrimSpace(text), next: func() (any, bool) { return nil, false }}
	switch {
	case len(d.text) == 0:
		fail("the file is empty: write it again")
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		d.binary, d.root = "PyTorch tensor", tensor.OpenTorch(text)
	case bytes.HasPrefix(text, []byte(tensor.NumPyMagic)):
		d.binary, d.root = "NumPy array", tensor.Stored(func() tensor.Array { return tensor.ParseNumPy(text) })
	case len(text) > 8 && text[8] == '{' && text[7] == 0:
		d.binary, d.root = oneRank, tensor.OpenSafetensors(path, text)
	case text[0] == 0x80:
		fail("a Python pickle, which can run anything when it is read: save the counts as JSON, or by numpy.save")
	case d.text[0] == '{' || d.text[0] == '[':
		d.next = newDecoder(d.text).next
		d.broken = attempt(func() {
			if d.root, _ = d.next(); isArray(d.root) {
				if _, more := d.next(); more {
					fail("want one list or object, have several values")
				}
			}
		})
		if d.broken != nil { // a log may begin with "[2026-11-22 …" or "[0] "
			d.root = nil
		}
	case bytes.Contains(d.text, []byte(placement.AssignmentsKey)):
		d.broken = attempt(func() { d.root = configuration(d.text) })
	}
	return d
}

// isText reports a text that is no JSON; a text has no byte of zero.
func (d *document) isText() bool {
	return d.text != nil && d.root == nil && bytes.IndexByte(d.text[:min(len(d.text), 4096)], 0) < 0
}

// named are the folder's files whose name matches.
func (d *document) named(name *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(d.files), func(path string) bool {
		return !name.MatchString(filepath.Base(path))
	})
}

// A fault ends the reading, see tensor.Fault.
func fail(format string, args ...any) { tensor.Fail(format, args...) }

func must[T any](v T, err error) T { return tensor.Must(v, err) }

func attempt(read func()) error { return tensor.Attempt(read) }

// within reads, and adds the place to a fault: record 2: layer_3: item [0 1]: want a number.
func within(place string, read func()) {
	if err := attempt(read); err != nil {
		fail("%s: %w", place, err)
	}
}

// reading reads a file, and names it in the error where that does not.
func reading(path string, read func()) error {
	err := attempt(read)
	if named := (*input.Error)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return &input.Error{File: path, Err: err}
}
