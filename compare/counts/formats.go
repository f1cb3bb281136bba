package counts

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/quantity"
)

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them. Errors are of type *input.Error.
func Read(path string) (*Record, error) { return ReadAs(path, nil) }

// ReadAs is Read with the axes, which must agree with those that a file tells; nil takes the file's.
func ReadAs(path string, axes Axes) (r *Record, err error) {
	err = reading(path, func() { r = openDocument(path).record(axes) })
	return r, err
}

// record reads the document by its container: a folder, an array, a tree of objects, a table, or lines.
func (d *document) record(axes Axes) *Record {
	c := newCollector(d)
	c.asked = axes
	c.locate(func() { c.read(d) })
	switch {
	case c.Format == "" && (len(c.placed) > 0 || d.isText() && assignments.Match(d.text)):
		fail("%w", errPlacement)
	case c.Format == "":
		d.fail()
	case c.Format == countsFormat && (d.text == nil || d.binary != ""):
		c.Format = statFormat
	}
	c.finish()
	return c.Record
}

func (c *collector) read(d *document) {
	root := d.root()
	array, isArray := root.(tensor.Stored)
	switch {
	case d.binary == safetensorsFile:
		fail("this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case part(root, "records") != nil && !c.placing:
		fail("this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that " +
			"holds all of them")
	case part(root, "schema_version") != nil && part(root, "kind") != nil && !c.placing:
		fail("this is a result of moebalance, not counts: 'moebalance report' reads it")
	case d.text == nil:
		c.readFolder(d)
	case isArray && len(d.head) > 1:
		fail("want one list or object, have several values")
	case isArray && c.placing:
		of := nothing()
		c.moeOnly = true
		c.holdArray(&of, array())
	case isArray:
		c.Format = cmp.Or(d.binary, "JSON matrix") + " of loads"
		c.bare(array())
	case root != nil:
		c.objects(d, nothing())
	case c.placing && d.isText() && assignments.Match(d.text):
		of := nothing()
		c.walk(configuration(d.text), &of)
	case d.isText():
		if t := openTable(d); t != nil {
			c.readTable(t)
		} else {
			c.readLines(d)
		}
	}
}

// mostLayers are more than any model has; an array of more is of steps or tokens.
const mostLayers = 256

// bare adds a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func (c *collector) bare(a tensor.Array) {
	axes := c.asked
	switch {
	case axes.areChoices():
		c.Format = routedFormat
	case axes != nil:
	case isMap(a):
		fail("%w; or say what these are, by --axes layers,experts or tokens,topk", errPlacement)
	case len(a.Shape) != 2 || a.Shape[0] > mostLayers:
		fail("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	case isTransposed(a):
		fail("all columns have one sum, as layers have, and the rows have not: say which are layers, by --axes " +
			"experts,layers or layers,experts")
	default:
		axes = Axes{"layers", "experts"}
	}
	c.array(a, axes, nothing())
}

// isTransposed reports counts whose columns look like layers, which all route the same tokens: the sums of columns are
// equal, and the sums of rows, whose counts are uneven, are not. [[1, 5], [3, 4], [6, 1]] → sums of 10, of 6, 7 and 7.
func isTransposed(a tensor.Array) bool {
	width := int(a.Shape[1])
	rows, columns := make([]int64, a.Shape[0]), make([]int64, width)
	uneven := false
	for i, n := range a.Values {
		rows[i/width], columns[i%width] = rows[i/width]+n, columns[i%width]+n
		uneven = uneven || n != a.Values[i-i%width]
	}
	return uneven && len(rows) > 1 && slices.Min(columns) == slices.Max(columns) && slices.Min(rows) < slices.Max(rows)
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

// fail says what a document without any counts is.
func (d *document) fail() {
	switch {
	case benchmarkKey.Match(d.text[:min(len(d.text), 1<<16)]):
		fail("this is the report of a benchmark, not counts: 'moebalance compare' reads it")
	case d.isText() && logPrefix.Match(d.text):
		fail("no line of this log tells expert load: 'moebalance counts --help' names the options that print such lines")
	case d.broken != nil:
		fail("%w", d.broken)
	}
	found := fmt.Sprintf("a file that begins with %q", d.text[:min(len(d.text), 12)])
	var keys []string
	for _, p := range items(d.root()) {
		keys = append(keys, p.Name)
	}
	if len(keys) > 0 {
		found = "an object of the keys " + strings.Join(keys[:min(len(keys), 8)], ", ")
	} else if d.root() != nil {
		found = "an object without keys"
	}
	fail("%w: want expert counts, have %s; 'moebalance counts --help' lists the formats", ErrUnknown, found)
}
