package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// RankTimes is the time of each rank's expert kernels, as a mean over steps. A
// rank without a single such kernel is unknown, not idle.
func RankTimes(arms ...Arm) BarSpec {
	groups := ranks(arms)
	at := position(groups)
	s := BarSpec{
		Name: "rank-time", Title: "Which ranks take longest over their experts?",
		GroupLabel: "rank", ValueLabel: "expert time " + per(arms), Groups: groups, Nanoseconds: true, Mean: true,
		Caption: fmt.Sprintf("%s. Observed time of kernels in the experts phase, collectives left out, summed over layers, mean over steps. %s",
			timedShape(arms, Arm.steps), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		values, steps := unknowns(len(groups)), a.divisor()
		for _, c := range a.cells() {
			if c.Phase == nsys.PhaseExperts {
				addKnown(&values[at[c.Rank]], work(c)/steps)
			}
		}
		s.Series = append(s.Series, BarSeries{a.Name, values, nan})
	}
	s.Alt = s.answer()
	return s
}

// cancels is the caveat of every figure that adds up steps before it compares.
func cancels(part, changes string) string {
	return fmt.Sprintf("A hot %s that changes from %s cancels here: the imbalance per layer, computed step by step, shows it.", part, changes)
}

// RankLoads is the recorded slots of each rank over all layers, as a mean over
// the recorded steps. Its floor is the largest rank's share when all slots of
// the ranks that are known are spread over these as evenly as whole slots can
// be, layer by layer: Σ over layers of ⌈slots/ranks⌉.
func RankLoads(arms ...Arm) BarSpec {
	groups := ranks(arms)
	at := position(groups)
	s := BarSpec{
		Name: "rank-load", Title: "Which ranks get the load?",
		GroupLabel: "rank", ValueLabel: "load per recorded step", Groups: groups, Unit: "slots", Mean: true,
		Caption: fmt.Sprintf("%s. Recorded slots of the experts each rank holds, summed over layers, mean over the recorded steps. The floor is the least the largest can be. %s",
			shape(arms), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		values, load := unknowns(len(groups)), a.expertLoad()
		slots := map[router.Whole]int64{}
		for _, e := range a.Trace.Experts {
			if v := load(e); known(v) {
				addKnown(&values[at[e.Rank]], v)
				slots[e.Layer] += e.Slots
			}
		}
		s.Series = append(s.Series, BarSeries{a.Name, values, floorSlots(slots, recordedSteps(a.Trace), countKnown(values))})
	}
	s.Alt = s.answer()
	return s
}

// floorSlots is the least that the busiest of n ranks can hold, in a step, of the
// layers' slots in all of them.
func floorSlots(slots map[router.Whole]int64, steps map[router.Whole]float64, n int) float64 {
	sum := nan
	for _, layer := range slices.Sorted(maps.Keys(slots)) {
		if f := router.Floor(slots[layer], n); f.Defined() {
			addKnown(&sum, f.Float64()*float64(slots[layer])/float64(n)/steps[layer])
		}
	}
	return sum
}

// RankLayerTimes is the heat map of expert time by layer and rank.
func RankLayerTimes(arms ...Arm) HeatSpec {
	columns := ranks(arms)
	at := position(columns)
	seen := map[int]bool{}
	for _, a := range arms {
		for _, c := range a.cells() {
			if c.Phase == nsys.PhaseExperts && c.Layer.Defined() {
				seen[int(c.Layer)] = true
			}
		}
	}
	layers := slices.Sorted(maps.Keys(seen))
	rows := position(layers)
	s := HeatSpec{
		Name: "rank-layer-time", Title: "Which ranks are slow in which layers?",
		RowLabel: "layer", ColumnLabel: "rank", Quantity: "time",
		Caption: fmt.Sprintf("%s. Observed time of kernels in the experts phase, collectives left out. Each cell is relative to the mean over ranks of its layer. %s",
			timedShape(arms, Arm.steps), cancels("rank", "step to step")),
	}
	var answers []string
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, columns)
		for _, c := range a.cells() {
			if c.Phase == nsys.PhaseExperts && c.Layer.Defined() {
				addKnown(&g.Values[rows[int(c.Layer)]][at[c.Rank]], work(c))
			}
		}
		s.Grids = append(s.Grids, g)
		answers = append(answers, g.extreme("layer", "rank"))
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

// value writes one bar's height.
func (s BarSpec) value(v float64) string {
	if s.Nanoseconds {
		return Duration(v)
	}
	return amount(v) + nbsp + s.Unit
}

// answer says in words what the bars show: the largest group of each series and
// how far above the mean it stands.
func (s BarSpec) answer() string {
	var out []string
	for _, series := range s.Series {
		worst := -1
		for i, v := range series.Values {
			if known(v) && (worst < 0 || v > series.Values[worst]) {
				worst = i
			}
		}
		mean := meanKnown(series.Values)
		switch {
		case worst < 0:
			out = append(out, series.Name+": nothing recorded.")
		case mean > 0 && isEven(series.Values[worst]/mean):
			out = append(out, fmt.Sprintf("%s: on average every %s has %s.", series.Name, s.GroupLabel, s.value(mean)))
		case mean > 0:
			out = append(out, fmt.Sprintf("%s: %s %d is largest, %s, %.2f × the mean.", series.Name, s.GroupLabel, s.Groups[worst], s.value(series.Values[worst]), series.Values[worst]/mean))
		default:
			out = append(out, series.Name+": all zero.")
		}
	}
	return strings.Join(out, " ")
}
