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

// describe adds to an identity what was found while writing.
func (f Feasibility) describe(id identity, checksum string) metadata {
	m := metadata{id, f.ProjectedRows, "any", checksum}
	if !math.IsInf(f.LargestBias, 1) {
		m.Tolerated = strconv.FormatFloat(f.LargestBias, 'g', -1, 64)
	}
	return m
}
