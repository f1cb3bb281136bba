package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
)

// ExpertTimes is the heat map of time by layer and expert, per step of the
// expert's rank. An expert that several ranks hold counts with the sum over its
// copies. Whether times were observed or allocated is part of the caption.
func ExpertTimes(arms ...Arm) HeatSpec {
	s := expertHeat(arms, Arm.expertTime)
	s.Name, s.Quantity = "expert-time", "time"
	s.Title = "Which experts take the time, and in which layers?"
	s.Caption = fmt.Sprintf("%s. %s Each cell is relative to the mean of its layer. %s", timedShape(arms, Arm.allSteps), basis(arms), cancels("expert", "step to step"))
	return s
}

// expertTime is the time of an expert on its rank, as a mean over the steps that
// the rank has.
func (a Arm) expertTime() func(nsys.ExpertStat) float64 {
	steps := a.stepsByRank()
	return func(e nsys.ExpertStat) float64 { return float64(e.TotalNS) / float64(max(1, len(steps[e.Rank]))) }
}

// ExpertLoads is the heat map of recorded slots by layer and expert.
func ExpertLoads(arms ...Arm) HeatSpec {
	s := expertHeat(arms, Arm.expertLoad)
	s.Name, s.Quantity = "expert-load", "load"
	s.Title = "Which experts get the slots, and in which layers?"
	s.Caption = fmt.Sprintf("%s. Recorded load in slots (a token times one of its chosen experts). Each cell is relative to the mean of its layer. %s", shape(arms), cancels("expert", "step to step"))
	return s
}

func basis(arms []Arm) string {
	seen := map[imbalance.Basis]bool{}
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			seen[e.Basis] = true
		}
	}
	switch {
	case seen[imbalance.Observed] && seen[imbalance.Allocated]:
		return "Times are partly observed and partly allocated by load, which is a model."
	case seen[imbalance.Allocated]:
		return "Times are allocated: grouped kernels split by load, which is a model and no measurement of single experts."
	}
	return "Times are observed: kernels launched inside each expert's own range."
}

// expertAxes are the layers and experts that any arm has a row for.
func expertAxes(arms []Arm) (layers, experts []int) {
	seenLayers, seenExperts := map[int]bool{}, map[int]bool{}
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			seenLayers[int(e.Layer)], seenExperts[e.Expert] = true, true
		}
	}
	return slices.Sorted(maps.Keys(seenLayers)), slices.Sorted(maps.Keys(seenExperts))
}

func expertHeat(arms []Arm, values func(Arm) func(nsys.ExpertStat) float64) HeatSpec {
	s := HeatSpec{RowLabel: "layer", ColumnLabel: "expert"}
	layers, experts := expertAxes(arms)
	rows, columns := position(layers), position(experts)
	var answers []string
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, experts)
		g.Cuts = rankCuts(a, columns)
		value := values(a)
		for _, e := range a.Trace.Experts {
			if v := value(e); known(v) {
				addKnown(&g.Values[rows[int(e.Layer)]][columns[e.Expert]], v)
			}
		}
		s.Grids = append(s.Grids, g)
		answers = append(answers, g.extreme("layer", "expert"))
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

// rankCuts are the columns at which the owning rank changes, and nil unless
// every expert has one owner and the owners are contiguous.
func rankCuts(a Arm, columns map[int]int) []int {
	owner := unknowns(len(columns))
	for _, e := range a.Trace.Experts {
		at := &owner[columns[e.Expert]]
		if known(*at) && *at != float64(e.Rank) {
			return nil
		}
		*at = float64(e.Rank)
	}
	var cuts []int
	for i := 1; i < len(owner); i++ {
		switch {
		case !known(owner[i-1]) || !known(owner[i]) || owner[i] < owner[i-1]:
			return nil
		case owner[i] > owner[i-1]:
			cuts = append(cuts, i)
		}
	}
	return cuts
}

// extreme says in words where the grid is largest relative to its row.
func (g Grid) extreme(row, column string) string {
	most, r, c := 0.0, -1, -1
	for i, cells := range g.RelativeToRow() {
		for j, v := range cells {
			if known(v) && v > most {
				most, r, c = v, i, j
			}
		}
	}
	switch {
	case r < 0:
		return fmt.Sprintf("%s: nothing recorded.", g.Name)
	case isEven(most):
		return fmt.Sprintf("%s: on average even in every %s.", g.Name, row)
	}
	return fmt.Sprintf("%s: the largest is %.2f × its %s's mean (%s %d, %s %d).", g.Name, most, row, row, g.Rows[r], column, g.Columns[c])
}
