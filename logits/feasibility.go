package logits

import (
	"math"
	"strconv"
)

// Feasibility says how many of an entry's planned choices the gate lets through.
type Feasibility struct {
	// ProjectedRows are the tokens whose experts are not the planned ones: the gate's
	// correction bias outweighs the logits, or the plan wants more groups than the gate
	// allows. The entry holds what the router picks instead.
	ProjectedRows int
	// LargestBias is the largest spread of a correction bias that the logits
	// tolerate; +Inf for methods that add none.
	LargestBias float64
}

// Status is "exact" where the router picks the planned experts of every token, or "projected".
func (f Feasibility) Status() string {
	if f.ProjectedRows > 0 {
		return "projected"
	}
	return "exact"
}

// add writes the feasibility into an entry's metadata.
func (f Feasibility) add(meta map[string]string) {
	meta[keyProjected] = strconv.Itoa(f.ProjectedRows)
	meta[keyTolerated] = "any"
	if !math.IsInf(f.LargestBias, 1) {
		meta[keyTolerated] = strconv.FormatFloat(f.LargestBias, 'g', -1, 64)
	}
}

// feasibility reads back what add wrote.
func (m *metadataReader) feasibility() Feasibility {
	f := Feasibility{ProjectedRows: m.integer(keyProjected), LargestBias: math.Inf(1)}
	if text := m.values[keyTolerated]; text != "any" {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) {
			m.fail(keyTolerated, "a number or any")
		}
		f.LargestBias = x
	}
	return f
}
