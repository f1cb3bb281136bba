package logits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Status says how far an entry's logits carry the plan through the gate.
type Status string

const (
	// Exact: the router picks the planned experts of every token.
	Exact Status = "exact"
	// Projected: for some tokens the gate's correction bias outweighs the
	// logits, or the plan wants more groups than the gate allows. The entry
	// holds what the router picks instead.
	Projected Status = "projected"
	// Infeasible: Projected, and for some tokens by the bias alone: it lies below
	// another's by more than the 1 that a sigmoid can add, an expert's or that of the
	// two best of a group together. No logits can help.
	Infeasible Status = "infeasible"
)

// statuses are ordered from the best to the worst.
var statuses = []Status{Exact, Projected, Infeasible}

// Worse is the worse of two statuses.
func (s Status) Worse(other Status) Status {
	return statuses[max(slices.Index(statuses, s), slices.Index(statuses, other))]
}

// Feasibility says how many of an entry's planned choices the gate lets through.
type Feasibility struct {
	Status        Status
	ProjectedRows int // tokens whose experts are not the planned ones
	// Infeasible are the planned experts that were not chosen because of the bias, in
	// ascending order.
	Infeasible []int32
	// LargestBias is the largest spread of a correction bias that the logits
	// tolerate; +Inf for methods that add none.
	LargestBias float64
}

// add writes the feasibility into an entry's metadata.
func (f Feasibility) add(meta map[string]string) {
	meta[keyStatus] = string(f.Status)
	meta[keyProjected] = strconv.Itoa(f.ProjectedRows)
	meta[keyTolerated] = "any"
	if !math.IsInf(f.LargestBias, 1) {
		meta[keyTolerated] = strconv.FormatFloat(f.LargestBias, 'g', -1, 64)
	}
	texts := make([]string, len(f.Infeasible))
	for i, e := range f.Infeasible {
		texts[i] = strconv.Itoa(int(e))
	}
	meta[keyInfeasible] = strings.Join(texts, ",")
}

// feasibility reads back what add wrote.
func (m *metadataReader) feasibility() Feasibility {
	f := Feasibility{Status: Status(m.values[keyStatus]), ProjectedRows: m.integer(keyProjected),
		LargestBias: math.Inf(1)}
	if !slices.Contains(statuses, f.Status) {
		m.fail(keyStatus, fmt.Sprintf("%s, %s or %s", Exact, Projected, Infeasible))
	}
	if text := m.values[keyTolerated]; text != "any" {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) {
			m.fail(keyTolerated, "a number or any")
		}
		f.LargestBias = x
	}
	if text := m.values[keyInfeasible]; text != "" {
		for number := range strings.SplitSeq(text, ",") {
			e, err := strconv.ParseUint(number, 10, 31)
			if err != nil {
				m.fail(keyInfeasible, "whole numbers with commas between them")
			}
			f.Infeasible = append(f.Infeasible, int32(e))
		}
	}
	return f
}
