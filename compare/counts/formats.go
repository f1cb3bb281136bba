package counts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them. Errors are of type *input.Error.
func Read(path string) (*Record, error) { return ReadAs(path, nil) }

// ReadAs is Read with the axes, which must agree with those that a file tells; nil takes the file's.
func ReadAs(path string, axes Axes) (*Record, error) {
	d, err := openDocument(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	r, err := d.record(axes)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return r, nil
}

// record reads the document by its container: a folder, an array, a tree of objects, a table, or lines.
func (d *document) record(axes Axes) (*Record, error) {
	c := newCollector(d)
	c.asked = axes
	array, isArray := d.root.(tensor.Stored)
	var t *table
	var err error
	switch {
	case d.binary == safetensorsFile:
		err = errors.New("this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case part(d.root, "records") != nil:
		err = errors.New("this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that " +
			"holds all of them")
	case part(d.root, "schema_version") != nil && part(d.root, "kind") != nil:
		err = errors.New("this is a result of moebalance, not counts: 'moebalance report' reads it")
	case d.text == nil:
		err = c.readFolder(d)
	case isArray:
		err = c.bare(d, array, axes)
	case d.root != nil:
		err = c.objects(d)
	case d.isText():
		if t, err = openTable(d); t != nil && err == nil {
			err = c.readTable(t)
		} else if t == nil {
			err = c.readLines(d)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case c.Format == "" && (len(c.placed) > 0 || d.isText() && assignments.Match(d.text)):
		return nil, errPlacement
	case c.Format == "":
		return nil, d.unknown()
	case c.Format == countsFormat && (d.text == nil || d.binary != ""):
		c.Format = statFormat
	}
	return c.Record, c.finish()
}

// mostLayers are more than any model has; an array of more is of steps or tokens.
const mostLayers = 256

// bare adds a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func (c *collector) bare(d *document, array tensor.Stored, axes Axes) error {
	n := 0
	for range d.values() {
		n++
	}
	a, err := array()
	c.Format = cmp.Or(d.binary, "JSON matrix") + " of loads"
	switch {
	case n > 1:
		return errors.New("want one list or object, have several values")
	case err != nil:
		return err
	case axes.areChoices():
		c.Format = routedFormat
	case axes != nil:
	case isMap(a):
		return fmt.Errorf("%w; or say that these are counts, by --axes layers,experts", errPlacement)
	case len(a.Shape) != 2 || a.Shape[0] > mostLayers:
		return fmt.Errorf("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	default:
		axes = Axes{"layers", "experts"}
	}
	return c.array(a, axes, nothing())
}

// isMap reports lists that map physical copies to experts, or experts to ranks, as no counts do: a number is −1, which
// is none, or every layer holds each number from 0 to the largest of all.
func isMap(a tensor.Array) bool {
	if len(a.Values) == 0 || slices.Min(a.Values) < 0 {
		return len(a.Values) > 0 && slices.Min(a.Values) == -1
	}
	largest, width := slices.Max(a.Values), int(a.Shape[len(a.Shape)-1])
	if len(a.Shape) == 3 { // layers × ranks × experts
		width *= int(a.Shape[1])
	}
	if largest < 1 || largest >= int64(width) {
		return false
	}
	for row := range slices.Chunk(a.Values, width) {
		if int64(len(slices.Compact(slices.Sorted(slices.Values(row))))) != largest+1 {
			return false
		}
	}
	return true
}

// unreadable names the file where the error does not.
func unreadable(path string, err error) error {
	if named := (*input.Error)(nil); errors.As(err, &named) {
		return err
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == path {
		err = p.Err
	}
	return &input.Error{File: path, Err: err}
}

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New(
	"this file is a placement of experts, not counts: pass a record of counts ('moebalance counts' takes the placement " +
		"beside it, with --placement)")

// logPrefix is how the lines of a log begin: "[2025-06-02 10:11:12 TP0] Prefill …".
var logPrefix = regexp.MustCompile(`^\[[^\]\n"{}]*\][ \t]*[^\s\],]`)

// benchmarkKey is in the reports of benchmarks.
var benchmarkKey = regexp.MustCompile(`"(?:benchmark|completed|request_throughput|overall_throughput|` +
	`median_decode_latency|system_output_throughput_tok_s)"\s*:`)

// unknown is what to say of a document without any counts.
func (d *document) unknown() error {
	switch {
	case benchmarkKey.Match(d.text[:min(len(d.text), 1<<16)]):
		return errors.New("this is the report of a benchmark, not counts: 'moebalance compare' reads it")
	case d.isText() && logPrefix.Match(d.text):
		return errors.New("no line of this log tells expert load: 'moebalance counts --help' names the options that print " +
			"such lines")
	case d.broken != nil:
		return d.broken
	}
	found := fmt.Sprintf("a file that begins with %q", d.text[:min(len(d.text), 12)])
	if keys := keysOf(d.root); len(keys) > 0 {
		found = "an object of the keys " + strings.Join(keys[:min(len(keys), 8)], ", ")
	} else if d.root != nil {
		found = "an object without keys"
	}
	return fmt.Errorf("%w: want expert counts, have %s; 'moebalance counts --help' lists the formats", ErrUnknown, found)
}
