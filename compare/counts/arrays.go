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
// experts are those of each rank, and topk holds the experts that a token chose.
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
	if last := axes.order(); !slices.Contains(axes, last[len(last)-1]) {
		return nil, fmt.Errorf("want experts (counts) or topk (ids of experts) among the axes, have %q", text)
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
	if axes == nil {
		var err error
		if axes, err = r.assumed(a); err != nil {
			return err
		}
	}
	a, err := axes.canonical(a)
	if err != nil {
		return err
	}
	if len(a.Shape) == len(routeAxes) {
		r.Format, r.Window, r.atLeast = routedFormat, true, true
		routes := routes{record: r, layers: map[stepKey]*routedLayer{}}
		if err := routes.addArray(a, &routedRecord{}); err != nil {
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
	if r.Window = !slices.Contains(axes, "steps"); r.Window {
		return r.addLayers(0, rowsOf(a, 0))
	}
	return r.addPasses(int(steps), func(step int) [][]int64 { return rowsOf(a, step) })
}

// rowsOf are the counts of each layer in one step of a canonical array.
func rowsOf(a tensor.Array, step int) [][]int64 {
	layers := tensor.Array{Shape: []int64{a.Shape[1], a.Shape[2] * a.Shape[3]}, Values: a.Row(step).Values}
	return layers.Rows()
}

// assumed are the axes of an array that nothing names.
func (r *Record) assumed(a tensor.Array) (Axes, error) {
	if len(a.Shape) != 2 {
		return nil, fmt.Errorf("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	}
	switch ids, sure := likeIDs(a); {
	case sure:
		return nil, fmt.Errorf("want counts of layers × experts, have numbers that look like the experts each "+
			"token chose, %v: name the dimensions, by --axes tokens,topk or --axes layers,experts", a.Shape)
	case ids:
		r.warn("ambiguous_array")
	}
	return Axes{"layers", "experts"}, nil
}

// likeIDs tells the ids of [tokens, top-k] from counts of [layers, experts]: a token never
// chooses an expert twice, and the layers of a model have equally many slots. It is sure where
// numbers that come again as often would coincide within the rows at least surely times.
func likeIDs(a tensor.Array) (ids, sure bool) {
	if len(a.Values) == 0 || a.Shape[1] < 2 || a.Shape[1] > maxTopK {
		return false, false
	}
	totals, times := map[int64]bool{}, map[int64]float64{}
	for _, row := range a.Rows() {
		if repeats(row) && !isPlaceholder(row) {
			return false, false
		}
		var total int64
		for _, n := range row {
			total += n
			times[n]++
		}
		if total > 0 {
			totals[total] = true
		}
	}
	again, n := 0.0, float64(len(a.Values)) // pairs of equal numbers, of n·(n − 1)
	for _, t := range times {
		again += t * (t - 1)
	}
	within := n * float64(a.Shape[1]-1) / 2 * again / (n * max(1, n-1))
	return len(totals) > 1, len(totals) > 1 && within >= surely
}

// surely is how many coincidences do not fail to come but once in fifty times.
const surely = 4

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

// readLogicalCount reads {"logical_count": …} as SGLang saves it, and takes it as
// --init-expert-location: steps × layers × experts, or the sum over the steps.
func readLogicalCount(s *source, r *Record) error {
	if len(s.values) != 1 {
		return fmt.Errorf("want one JSON object, have %d", len(s.values))
	}
	a, err := numbers(s.keys["logical_count"])
	if err != nil {
		return fmt.Errorf("logical_count: %w", err)
	}
	for _, key := range mapKeys {
		if text := s.keys[key]; len(text) > 0 && text[0] == '[' {
			placed, err := numbers(text)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			r.keepMap(placed)
		}
	}
	return r.addArray(a, s.axes, logicalAxes(a))
}

// mapKeys may stand beside logical_count: the expert of each physical slot, by layer.
var mapKeys = []string{"physical_to_logical_map", "last_physical_to_logical_map", "p2l_map"}

// keepMap keeps where the experts are, once the number of ranks is known; see Running.
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

// logicalAxes are those of SGLang's logical_count.
func logicalAxes(a tensor.Array) Axes {
	if len(a.Shape) == 2 {
		return Axes{"layers", "experts"}
	}
	return Axes{"steps", "layers", "experts"}
}

// readMatrix reads a list of lists alone in its file.
func readMatrix(s *source, r *Record) error {
	if len(s.values) != 1 {
		return fmt.Errorf("want one list of layers × experts, have %d values", len(s.values))
	}
	a, err := numbers(s.values[0])
	if err == nil {
		err = r.addArray(a, s.axes, nil)
	}
	return err
}

// readNPY reads an array of numpy.save.
func readNPY(s *source, r *Record) error {
	a, err := tensor.ParseNumPy(s.content)
	if err == nil {
		err = r.addArray(a, s.axes, nil)
	}
	return err
}

// addPasses adds the layers of n passes. Those without any count are left out:
// SGLang's recorder is a ring buffer, which may not be full.
func (r *Record) addPasses(n int, layers func(pass int) [][]int64) error {
	empty := 0
	for pass := range n {
		rows := layers(pass)
		if !slices.ContainsFunc(rows, func(row []int64) bool { return !isZero(row) }) {
			empty++
			continue
		}
		if err := r.addLayers(int64(pass), rows); err != nil {
			return err
		}
	}
	if empty > 0 {
		r.warn("empty_steps", "empty", empty, "steps", n)
	}
	return nil
}

func isZero(counts []int64) bool {
	return !slices.ContainsFunc(counts, func(n int64) bool { return n != 0 })
}
