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
	axes := Axes(strings.Split(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(text)), ","))
	for i, name := range axes {
		if slices.Contains(axes[:i], name) || !slices.Contains(axes.order(), name) {
			return nil, fmt.Errorf("want each of %s at most once, with experts, or of %s, with topk; have %q",
				strings.Join(countAxes, ", "), strings.Join(routeAxes, ", "), text)
		}
	}
	if !slices.ContainsFunc(axes, func(name string) bool { return slices.Contains(Axes{"experts", "tokens", "topk"}, name) }) {
		return nil, fmt.Errorf("want experts (counts) or tokens (ids of experts) among the axes, have %q", text)
	}
	return axes, nil
}

// order is the canonical order of the axes that these are some of.
func (axes Axes) order() Axes {
	if slices.Contains(axes, "topk") || slices.Contains(axes, "tokens") {
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

// addArray adds an array of the axes that are asked for, or else of those given.
func (r *Record) addArray(a tensor.Array, asked, axes Axes) error {
	if asked != nil {
		axes = asked
	}
	a, err := axes.canonical(a)
	if err != nil {
		return err
	}
	if len(a.Shape) == len(routeAxes) {
		r.Format, r.Window, r.atLeast = routedFormat, true, true
		routes := routes{record: r, layers: map[stepKey]*routedLayer{}}
		if err := routes.addArray(a, &choice{}); err != nil {
			return err
		}
		return routes.finish()
	}
	steps, layers, ranks, local := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	if steps < 1 || layers < 1 || layers > maxLayers || ranks > maxRanks || local > maxExperts ||
		bounded(int(ranks*local), int(ranks)) != nil {
		return fmt.Errorf("want steps, layers and experts such as models have, have %v (%s)", a.Shape,
			strings.Join(countAxes, ", "))
	}
	if slices.Contains(axes, "ranks") {
		r.Ranks = int(ranks)
	}
	r.Window = !slices.Contains(axes, "steps")
	empty := 0
	for step := range int(steps) {
		rows := tensor.Array{Shape: []int64{layers, ranks * local}, Values: a.Row(step).Values}.Rows()
		if !r.Window && !slices.ContainsFunc(rows, holdsAny) {
			empty++ // SGLang's recorder is a ring buffer, which may not be full
			continue
		}
		if err := r.addLayers(stepKey{iteration: int64(step)}, rows); err != nil {
			return err
		}
	}
	if empty > 0 {
		r.warn("empty_steps", "empty", empty, "steps", steps)
	}
	return nil
}

func holdsAny(row []int64) bool {
	return slices.ContainsFunc(row, func(n int64) bool { return n != 0 })
}

// readArray reads a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func readArray(d *document, r *Record) error {
	if len(d.values) != 1 {
		return fmt.Errorf("want one list of layers × experts, have %d values", len(d.values))
	}
	a, err := d.values[0].array()
	if err != nil {
		return err
	}
	r.Time = torchTime(d.path)
	switch {
	case d.axes == nil && isMap(a):
		return fmt.Errorf("%w; or say that these are counts, by --axes layers,experts", errPlacement)
	case d.axes == nil && len(a.Shape) != 2:
		return fmt.Errorf("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	}
	return r.addArray(a, d.axes, Axes{"layers", "experts"})
}

// isMap reports lists that map physical copies to experts, or experts to ranks, as no counts do:
// every list holds each number from 0 to the largest of all, and nothing below −1.
func isMap(a tensor.Array) bool {
	if len(a.Values) == 0 {
		return false
	}
	largest, width := slices.Max(a.Values), int(a.Shape[len(a.Shape)-1])
	if largest < 1 || largest >= int64(width) || slices.Min(a.Values) < -1 {
		return false
	}
	for row := range slices.Chunk(a.Values, width) {
		seen := map[int64]bool{}
		for _, n := range row {
			seen[n] = true
		}
		delete(seen, -1)
		if int64(len(seen)) != largest+1 {
			return false
		}
	}
	return true
}

// mapKeys may stand beside logical_count: the expert of each physical slot, by layer.
var mapKeys = []string{"physical_to_logical_map", "last_physical_to_logical_map", "p2l_map"}

// readLogicalCount reads logical_count as SGLang saves it, and takes it as
// --init-expert-location: steps × layers × experts, or the sum over the steps, summed over the
// ranks already.
func readLogicalCount(d *document, r *Record) error {
	if len(d.values) != 1 {
		return fmt.Errorf("want one JSON object, have %d", len(d.values))
	}
	r.Time = torchTime(d.path)
	a, err := d.keys["logical_count"].array()
	if err != nil {
		return fmt.Errorf("logical_count: %w", err)
	}
	for _, key := range mapKeys {
		if !d.has(key) || !d.keys[key].isList() {
			continue
		}
		placed, err := d.keys[key].array()
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		r.keepMap(placed)
	}
	axes := Axes{"steps", "layers", "experts"}
	if len(a.Shape) == 2 {
		axes = axes[1:]
	}
	if err := r.addArray(a, d.axes, axes); err != nil {
		return fmt.Errorf("logical_count: %w", err)
	}
	return nil
}

// keepMap keeps where the experts are until the number of ranks is known; see Running.
func (r *Record) keepMap(placed tensor.Array) {
	if len(placed.Shape) != 2 || len(placed.Values) == 0 {
		return
	}
	r.copies = map[int][]int32{}
	for layer, row := range placed.Rows() {
		for _, e := range row {
			r.copies[layer] = append(r.copies[layer], int32(min(max(e, -1), maxExperts)))
		}
	}
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// numbers reads lists within lists, all of one shape, of whole numbers, which tools also
// write as 12.0. The text is valid JSON.
func numbers(text []byte) (a tensor.Array, err error) {
	a.Values = make([]int64, 0, 1+bytes.Count(text, []byte(",")))
	var open []int64 // how many items each open list has so far
	depth := 0       // of the numbers, once there is one
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ',' || c <= ' ':
			i++
		case c == '[':
			if i++; len(open) == maxDimensions {
				return a, fmt.Errorf("want at most %d dimensions", maxDimensions)
			}
			if open = append(open, 0); len(open) > len(a.Shape) {
				a.Shape = append(a.Shape, -1)
			}
		case c == ']':
			i++
			at := len(open) - 1
			if n := open[at]; a.Shape[at] < 0 {
				a.Shape[at] = n
			} else if a.Shape[at] != n {
				return a, fmt.Errorf("want lists of one length, have %d and %d numbers or lists in two of them",
					a.Shape[at], n)
			}
			if open = open[:at]; at > 0 {
				open[at-1]++
			}
		case len(open) == 0 || depth > 0 && len(open) != depth:
			return a, fmt.Errorf("want lists of counts, layers × experts, have %.60s", text)
		default:
			end := i + 1
			for text[end] != ',' && text[end] != ']' && text[end] > ' ' {
				end++
			}
			n, err := whole(text[i:end])
			if err != nil {
				return a, err
			}
			a.Values, i, depth = append(a.Values, n), end, len(open)
			open[depth-1]++
		}
	}
	if depth > 0 && depth != len(a.Shape) {
		return a, errors.New("want lists of one depth")
	}
	return a, nil
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
