package counts

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/quantity"
)

// Axes name the dimensions of an array, the outermost first. Two dimensions are layers
// and experts unless they are named; of three, no order is common enough to be assumed.
type Axes []string

// The names of axes, in the order in which the rest of the package reads them. With ranks,
// experts are counted from 0 on each rank; tokens chose experts, one each where topk is absent.
var (
	countAxes = Axes{"steps", "layers", "ranks", "experts"}
	routeAxes = Axes{"tokens", "layers", "topk"}
)

// ParseAxes reads names with commas between them; "" names none.
func ParseAxes(text string) (Axes, error) {
	if text == "" {
		return nil, nil
	}
	axes := Axes(strings.Split(plainName(text), ","))
	for i, name := range axes {
		if slices.Contains(axes[:i], name) || !slices.Contains(axes.order(), name) {
			return nil, fmt.Errorf("want each of %s at most once, with experts, or of %s, with topk; have %q",
				strings.Join(countAxes, ", "), strings.Join(routeAxes, ", "), text)
		}
	}
	if !axes.has("experts") && !axes.areRoutes() {
		return nil, fmt.Errorf("want experts (counts) or tokens (ids of experts) among the axes, have %q", text)
	}
	return axes, nil
}

// plainName is a name without case, spaces, hyphens and underscores: "Top-K" → "topk".
func plainName(text string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(text))
}

func (axes Axes) has(name string) bool { return slices.Contains(axes, name) }

func (axes Axes) areRoutes() bool { return axes.has("topk") || axes.has("tokens") }

// order is the canonical order of the axes that these are some of.
func (axes Axes) order() Axes {
	if axes.areRoutes() {
		return routeAxes
	}
	return countAxes
}

// canonical is the array with all axes of the order, those that it lacks of length 1.
func (axes Axes) canonical(a tensor.Array) (tensor.Array, error) {
	if len(axes) != len(a.Shape) {
		return a, fmt.Errorf("want %s as --axes %s says, have an array of %v",
			quantity.Count(len(axes), "dimension"), strings.Join(axes, ","), a.Shape)
	}
	var order []int
	var shape []int64
	for _, name := range axes.order() {
		at, n := slices.Index(axes, name), int64(1)
		if at >= 0 {
			order, n = append(order, at), a.Shape[at]
		}
		shape = append(shape, n)
	}
	a = a.Transposed(order)
	a.Shape = shape
	return a, nil
}

// array adds an array of the axes that are asked for, or else of those given.
func (c *collector) array(a tensor.Array, axes Axes) error {
	if c.axes != nil {
		axes = c.axes
	}
	a, err := axes.canonical(a)
	if err != nil {
		return err
	}
	if axes.areRoutes() {
		c.Format = routedFormat
		w := newObjects(c)
		if err := w.tokens(a, context{}); err != nil {
			return err
		}
		return w.end(1)
	}
	steps, layers, ranks, local := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	if steps < 1 || layers < 1 || layers > maxLayers || ranks > maxRanks || local > maxExperts ||
		bounded(int(ranks*local), int(ranks)) != nil {
		return fmt.Errorf("want steps, layers and experts such as models have, have %v (%s)", a.Shape,
			strings.Join(countAxes, ", "))
	}
	if axes.has("ranks") {
		c.Ranks = int(ranks)
	}
	c.Window = !axes.has("steps")
	empty := 0
	for step := range int(steps) {
		rows := tensor.Array{Shape: []int64{layers, ranks * local}, Values: a.Row(step).Values}.Rows()
		if !c.Window && !slices.ContainsFunc(rows, holdsAny) {
			empty++ // SGLang's recorder is a ring buffer, which may not be full
			continue
		}
		if err := c.rows(stepKey{iteration: int64(step)}, rows); err != nil {
			return err
		}
	}
	if empty > 0 {
		c.warn("empty_steps", "empty", empty, "steps", steps)
	}
	return nil
}

func holdsAny(row []int64) bool {
	return slices.ContainsFunc(row, func(n int64) bool { return n != 0 })
}

// readArray reads a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func readArray(d *document, c *collector) error {
	v, err := d.only()
	if err != nil {
		return err
	}
	a, err := v.array()
	switch {
	case err != nil:
		return err
	case d.axes == nil && isMap(a):
		return fmt.Errorf("%w; or say that these are counts, by --axes layers,experts", errPlacement)
	case d.axes == nil && len(a.Shape) != 2:
		return fmt.Errorf("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	}
	return c.array(a, Axes{"layers", "experts"})
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
		seen := slices.Compact(slices.Sorted(slices.Values(row)))
		if int64(len(seen)) != largest+1 {
			return false
		}
	}
	return true
}

// numbers reads lists within lists, all of one shape, of whole numbers, which tools also
// write as 12.0: [[1, 2], [3, 4]] → shape 2 × 2. The text is valid JSON.
func numbers(text []byte) (tensor.Array, error) {
	l := lists{text: text}
	if len(text) == 0 || text[0] != '[' {
		return l.Array, fmt.Errorf("want lists of counts, layers × experts, have %.60s", text)
	}
	l.Values = make([]int64, 0, 1+bytes.Count(text, []byte(",")))
	err := l.list(0)
	if err == nil && l.leaf > 0 && l.leaf != len(l.Shape) {
		err = errors.New("want lists of one depth")
	}
	return l.Array, err
}

// lists is a text at a place, and the numbers before it.
type lists struct {
	tensor.Array
	text []byte
	at   int
	leaf int // in how many lists the numbers stand, once there is one
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// list reads one list, which stands in so many others.
func (l *lists) list(depth int) error {
	if depth == maxDimensions {
		return fmt.Errorf("want at most %d dimensions", maxDimensions)
	}
	if depth == len(l.Shape) {
		l.Shape = append(l.Shape, -1)
	}
	l.at++
	for n := int64(0); ; {
		switch b := l.text[l.at]; {
		case b == ',' || b <= ' ':
			l.at++
			continue
		case b == ']':
			l.at++
			if before := l.Shape[depth]; before >= 0 && before != n {
				return fmt.Errorf("want lists of one length, have %d and %d numbers or lists in two of them", before, n)
			}
			l.Shape[depth] = n
			return nil
		case b == '[':
			if err := l.list(depth + 1); err != nil {
				return err
			}
		case l.leaf > 0 && l.leaf != depth+1:
			return fmt.Errorf("want lists of counts, layers × experts, have %.60s", l.text)
		default:
			end := l.at + 1
			for l.text[end] != ',' && l.text[end] != ']' && l.text[end] > ' ' {
				end++
			}
			v, err := whole(l.text[l.at:end])
			if err != nil {
				return err
			}
			l.Values, l.at, l.leaf = append(l.Values, v), end, depth+1
		}
		n++
	}
}

// whole reads one number.
func whole(text []byte) (int64, error) {
	digits, zeros, _ := bytes.Cut(text, []byte("."))
	if len(bytes.Trim(zeros, "0")) == 0 && len(digits) < 20 { // an error for each 12.0 would take more than the numbers
		if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			return n, nil
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxCount {
		return 0, fmt.Errorf("want whole counts below %d, have %.60s", int64(maxCount), text)
	}
	return int64(v), nil
}
