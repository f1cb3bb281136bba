package counts

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// Axes name the dimensions of an array, the outermost first. Two dimensions are layers
// and experts unless they are named; of three, no order is common enough to be assumed.
// With ranks, experts are counted from 0 on each rank; tokens chose experts, one each where topk is
// absent. Within the package copies are physical experts.
type Axes []string

// What people may ask for: counts, or choices.
var (
	countAxes  = Axes{"steps", "layers", "ranks", "experts"}
	choiceAxes = Axes{"tokens", "layers", "topk"}
)

// form is the order into which every array is brought, the inner names standing in one place.
var form = [4]Axes{{"steps", "tokens"}, {"layers"}, {"ranks"}, {"experts", "copies", "topk"}}

// ParseAxes reads names with commas between them; "" names none.
func ParseAxes(text string) (Axes, error) {
	if text == "" {
		return nil, nil
	}
	axes, known := Axes(strings.Split(plain(text), ",")), countAxes
	wrong := !axes.has("experts") && !axes.areChoices()
	if axes.areChoices() {
		known = choiceAxes
	}
	for i, name := range axes {
		wrong = wrong || slices.Contains(axes[:i], name) || !known.has(name)
	}
	if wrong {
		return nil, fmt.Errorf("want each of %s at most once, with experts (counts), or of %s (ids of experts), have %q",
			strings.Join(countAxes, ", "), strings.Join(choiceAxes, ", "), text)
	}
	return axes, nil
}

// plain is a name without case, spaces, hyphens and underscores: "Top-K" → "topk".
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '_' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

func (axes Axes) has(name string) bool { return slices.Contains(axes, name) }

func (axes Axes) areChoices() bool { return axes.has("topk") || axes.has("tokens") }

// inner is the last dimension of a row: a number each for copies, experts, ranks or choices.
func (axes Axes) inner() string {
	inner := Axes{"copies", "experts", "ranks", "choices"}
	return inner[slices.IndexFunc(inner, func(name string) bool { return axes.has(name) || name == "choices" })]
}

// formed is the array in the order of form, with axes that it lacks of length 1.
func (axes Axes) formed(a tensor.Array) tensor.Array {
	if len(axes) != len(a.Shape) {
		fail("want %d dimensions (%s), have an array of %v", len(axes), strings.Join(axes, ","), a.Shape)
	}
	shape, strides, own := []int64{1, 1, 1, 1}, []int64{0, 0, 0, 0}, a.Strides()
	for place, names := range form {
		if at := slices.IndexFunc(axes, names.has); at >= 0 {
			shape[place], strides[place] = a.Shape[at], own[at]
		}
	}
	return tensor.View(a.Values, 0, shape, strides)
}
