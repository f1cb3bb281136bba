package logits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
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
	// Infeasible: Projected, and for some tokens no logits whatever could have
	// done better, because a bias lies below another's by more than the 1 that
	// a sigmoid can add: an expert's, or the two best of a group together.
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
	// Infeasible are the planned experts that no logits can bring to be chosen,
	// in ascending order.
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
	f := Feasibility{Status: Status(m.values[keyStatus]), ProjectedRows: m.integer(keyProjected), LargestBias: math.Inf(1)}
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

// unreachable lists the experts of a planned row that no logits can get chosen, in
// ascending order: those outdone inside the groups that the plan needs, and those
// of groups outdone by others. All of it rests on a sigmoid's being from 0 to 1;
// float32 sums, being monotonous, keep the order of the bounds.
func unreachable(row []int32, g router.Gate) []int32 {
	if g.Method == router.DeepSeekV4 || len(g.Bias) == 0 {
		return nil
	}
	lost := append(outdone(row, g), outgrouped(row, g)...)
	slices.Sort(lost)
	return slices.Compact(lost)
}

// outdone lists the experts that even at a sigmoid of 1 stay at or below an expert
// that the plan leaves out at 0, in a group that the plan needs. Equal scores go to
// the lower index.
func outdone(row []int32, g router.Gate) (lost []int32) {
	size := int32(g.Shape.GroupSize())
	rival := int32(-1) // the strongest expert left out of the groups in use
	for e, b := range g.Bias {
		e := int32(e)
		used := slices.ContainsFunc(row, func(c int32) bool { return c/size == e/size })
		if used && !slices.Contains(row, e) && (rival < 0 || b > g.Bias[rival]) {
			rival = e
		}
	}
	if rival < 0 {
		return nil
	}
	for _, e := range row {
		most, least := 1+g.Bias[e], g.Bias[rival]
		if most < least || (most == least && rival < e) {
			lost = append(lost, e)
		}
	}
	return lost
}

// outgrouped lists the experts whose groups no logits can keep open: so many
// groups that the plan leaves out score more at a sigmoid of 0 than theirs can at
// 1 that the other planned groups and those take all the places there are.
func outgrouped(row []int32, g router.Gate) (lost []int32) {
	if !g.Shape.Grouped() {
		return nil
	}
	size := g.Shape.GroupSize()
	planned := make([][]int32, g.Shape.Groups)
	for _, e := range row {
		planned[int(e)/size] = append(planned[int(e)/size], e)
	}
	var without []float32 // least scores of the groups left out
	for group, experts := range planned {
		if len(experts) == 0 {
			without = append(without, router.GroupScore(g.Bias[group*size:(group+1)*size]))
		}
	}
	for _, experts := range planned {
		if len(experts) == 0 {
			continue
		}
		scores := make([]float32, 0, len(experts)+1)
		for _, e := range experts {
			scores = append(scores, 1+g.Bias[e])
		}
		if len(scores) == 1 && size > 1 { // the next best of the group must not outdo it
			scores = append(scores, scores[0])
		}
		most, taken := router.GroupScore(scores), g.Shape.Groups-len(without)
		for _, least := range without {
			if least > most {
				taken++
			}
		}
		if taken > g.Shape.TopKGroups {
			lost = append(lost, experts...)
		}
	}
	return lost
}
