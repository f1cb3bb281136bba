package counts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// ReadAs is Read with the axes of an array that is alone in its file; nil for layers and experts.
func ReadAs(path string, axes Axes) (r *Record, err error) {
	err = reading(path, func() { r = openDocument(path).record(axes) })
	return r, err
}

// record reads the document as counts.
func (d *document) record(axes Axes) *Record {
	c := newCollector(d)
	c.asked = axes
	c.read(d)
	switch {
	case c.Format == "" && len(c.placed) > 0:
		fail("%w", errPlacement)
	case c.Format == "":
		d.fail()
	case c.Format == countsFormat && (d.text == nil || d.binary != ""):
		c.Format = statFormat
	}
	c.finish()
	return c.Record
}

// read reads the document by its container: a folder, an array, objects, a table, or lines.
func (c *collector) read(d *document) {
	switch {
	case d.binary == oneRank || d.binary != "" && part(d.root, "records") != nil && !c.placing:
		fail("this is one rank's file: give the folder that holds all ranks' files, whose sum is the load")
	case d.text == nil:
		c.readFolder(d)
	case d.root != nil:
		c.records(d)
	case d.isText():
		if t := openTable(d.text); t != nil {
			c.readTable(t)
		} else {
			c.readLines(d.text)
		}
	}
}

// bare adds a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func (c *collector) bare(v any, of *context) {
	axes, a := c.asked, arrayOf(v)
	c.Format = cmp.Or(c.binary, "JSON matrix") + " of loads"
	switch {
	case c.placing:
		c.moeOnly = true
		c.place(of, a)
		return
	case axes.areChoices():
		c.Format = routedFormat
	case axes != nil:
	case isMap(a):
		fail("%w; or say what these are, by --axes layers,experts or tokens,topk", errPlacement)
	case len(a.Shape) != 2 || a.Shape[0] > 256: // more layers than any model has: these are steps or tokens
		fail("want counts of layers × experts, have %v: name the dimensions, such as --axes steps,layers,experts, or "+
			"tokens,layers of chosen experts", a.Shape)
	default:
		axes = Axes{"layers", "experts"}
	}
	c.array(a, axes, *of)
}

// isTransposed reports layers × experts, of any steps, whose columns look like layers, which all route the same tokens:
// the sums of columns are equal, and the sums of rows, whose counts are uneven, are not; but for dense layers, which
// have none. [[1, 5], [3, 4], [6, 1]] → sums of 10, of 6, 7 and 7.
func isTransposed(values []int64, layers, width int) bool {
	rows, columns := make([]int64, layers), make([]int64, width)
	uneven := false
	for i, n := range values {
		rows[i/width%layers], columns[i%width] = rows[i/width%layers]+n, columns[i%width]+n
		uneven = uneven || n != values[i-i%width]
	}
	level := func(sums []int64) bool {
		loaded := slices.DeleteFunc(slices.Clone(sums), func(sum int64) bool { return sum == 0 })
		return 2*len(loaded) > len(sums) && slices.Min(loaded) == slices.Max(loaded)
	}
	return uneven && level(columns) && !level(rows)
}

// isMap reports lists of experts or ranks, as no counts are: a number is −1, which is none, all are 0 or 1, as in a
// mask, or every layer holds each number from 0 to the largest of all, or none twice where chance would bring 8 that
// are, in four times as many rows as columns: of tokens and their few experts.
func isMap(a tensor.Array) bool {
	if len(a.Values) == 0 {
		return false
	}
	least, largest, width := slices.Min(a.Values), slices.Max(a.Values), len(a.Values)
	if least < 0 {
		return least == -1
	}
	if len(a.Shape) > 1 { // layers × …
		width /= int(a.Shape[0])
	}
	whole, distinct := true, width > 2 && largest < int64(len(a.Values)*width/16) && len(a.Values) >= 4*width*width
	for row := range slices.Chunk(a.Values, width) {
		n := len(slices.Compact(slices.Sorted(slices.Values(row))))
		whole, distinct = whole && int64(n) == largest+1, distinct && n == width
	}
	return largest > 0 && (whole || distinct || least == 0 && largest == 1)
}

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New("this file is a placement of experts, not counts: give counts, and it with --placement")

// logPrefix is how the lines of a log begin: "[2025-06-02 10:11:12 TP0] Prefill …".
var logPrefix = regexp.MustCompile(`^\[[^\]\n"{}]*\][ \t]*[^\s\],]`)

// fail says what a document without any counts is.
func (d *document) fail() {
	switch {
	case d.isText() && (logPrefix.Match(d.text) || input.EngineLog(string(d.text)) != ""):
		fail("no line of this log tells expert load: 'moebalance counts --help' names the options that print such lines%s",
			strings.TrimSuffix("; it is "+input.EngineLog(string(d.text)), "; it is "))
	case d.broken != nil:
		fail("%w", d.broken)
	case word(part(d.root, "kind")) == "moebalance hook":
		fail("this is the hook's proof, without counts: give the folder in which the hook wrote it, or a file of counts")
	}
	found := input.Beginning(d.text)
	if object, is := d.root.(map[string]any); is {
		keys := slices.Sorted(maps.Keys(object))
		found = fmt.Sprintf("an object of %s: %.200q", quantity.Count(len(keys), "key"), strings.Join(keys, ", "))
	}
	fail("%w: want expert counts, have %s; 'moebalance counts --help' lists the formats", ErrUnknown, found)
}
