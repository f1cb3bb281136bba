package plots

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// Arm is a trace under the name that figures show it by: "learned routing", "balanced
// routing", or the name of its input. The functions that take arms put them on one scale,
// over the union of their ranks, layers and experts. A rank or step without kernels
// in an arm is unknown there.
type Arm struct {
	Name  string
	Trace *trace.Trace
}

// panelTitle is the title of the panel of one of several arms; a single panel needs none.
func panelTitle(name string, arms int) string {
	if arms == 1 {
		return ""
	}
	return name
}

// per is the basis of times: a step, or the capture where no step is marked.
func per(arms []Arm) string {
	if slices.ContainsFunc(arms, func(a Arm) bool { return !a.Trace.Times().Unmarked && len(a.Trace.Times().Steps) > 0 }) {
		return "per step"
	}
	return "in the capture"
}

// ranks are the ranks of all arms, ascending.
func ranks(arms []Arm) (all []int) {
	for _, a := range arms {
		all = append(all, a.Trace.Times().Ranks...)
		for _, r := range a.Trace.Ranks {
			all = append(all, r.Rank)
		}
	}
	return distinct(all)
}

// distinct are numbers in order, each once: 3, 1, 3 → 1, 3.
func distinct(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// extent is the first part of a caption: "4 ranks, mean over the steps that count".
func extent(arms []Arm) string {
	text := quantity.Count(len(ranks(arms)), "rank")
	if per(arms) == "per step" {
		text += ", mean over the steps that count"
	}
	return text
}

// cancels is the caveat of every figure that adds up steps before it compares.
func cancels(part string) string {
	return fmt.Sprintf("A hot %s that changes from step to step averages out here, but not in the answer and the "+
		"tables.", part)
}

// cell is a value of a heat map, NaN where it is not known.
type cell struct {
	grid, row, column int
	value             float64
}

// heatOf puts cells into the grids, over all rows and columns that any of them has. Values of one
// place add up: an expert's copies on two ranks are one cell.
func (h HeatSpec) heatOf(cells []cell) HeatSpec {
	for _, c := range cells {
		h.Rows, h.Columns = append(h.Rows, c.row), append(h.Columns, c.column)
	}
	h.Rows, h.Columns = distinct(h.Rows), distinct(h.Columns)
	for i := range h.Grids {
		for range h.Rows {
			h.Grids[i].Values = append(h.Grids[i].Values, slices.Repeat([]float64{nan}, len(h.Columns)))
		}
	}
	for _, c := range cells {
		i, _ := slices.BinarySearch(h.Rows, c.row)
		j, _ := slices.BinarySearch(h.Columns, c.column)
		switch at := &h.Grids[c.grid].Values[i][j]; {
		case known(*at) && known(c.value):
			*at += c.value
		case known(c.value):
			*at = c.value
		}
	}
	return h
}

// RankLayerTimes is the heat map of expert time by layer and rank.
func RankLayerTimes(arms ...Arm) HeatSpec {
	s := HeatSpec{Name: "rank-layer-time", Title: "Which rank is slow in which layer?", RowLabel: "layer",
		ColumnLabel: "rank", Quantity: "expert time", Caption: extent(arms) + ". " + cancels("rank")}
	var cells []cell
	for i, a := range arms {
		s.Grids = append(s.Grids, Grid{Name: a.Name})
		for _, l := range a.Trace.Times().Judged() {
			means := l.Means()
			for r, ns := range means {
				if ns == 0 {
					ns = nan // a rank without a kernel is unknown, not idle
				}
				if l.Number.Defined() && slices.Max(means) > 0 {
					cells = append(cells, cell{i, int(l.Number), l.Ranks[r], ns})
				}
			}
		}
	}
	return s.heatOf(cells)
}

// ExpertTimes is the heat map of time by layer and expert. An expert on several ranks has
// the sum over its copies. The caption says whether times are observed or allocated.
func ExpertTimes(arms ...Arm) HeatSpec {
	s := HeatSpec{Name: "expert-time", Title: "Which experts take long?", RowLabel: "layer", ColumnLabel: "expert",
		Quantity: "time"}
	basis := "Times are observed: kernels launched inside the expert's own range."
	var cells []cell
	for i, a := range arms {
		s.Grids = append(s.Grids, Grid{Name: a.Name})
		for _, e := range a.Trace.Experts {
			c := cell{i, int(e.Layer), e.Expert, float64(e.TotalNS) / float64(max(1, len(a.Trace.Times().Steps)))}
			if c.value < 0 { // as a broken file may hold
				c.value = nan
			}
			cells = append(cells, c)
		}
		if slices.ContainsFunc(a.Trace.Experts, func(e trace.ExpertStat) bool { return e.Basis == imbalance.Allocated }) {
			basis = "Times are allocated: the time of grouped kernels split by load, which is a model."
		}
	}
	s.Caption = fmt.Sprintf("%s. %s %s", extent(arms), basis, cancels("expert"))
	return s.heatOf(cells)
}

// Recorded is the load that expert statistics hold, by layer, under the name that figures
// show it by.
type Recorded struct {
	Name   string
	Layers map[int][]int64 // slots of each expert by layer
}

// RecordedLoads is the heat map of slots by layer and expert, one panel per source. Layers
// and experts that a source lacks are unknown in its panel.
func RecordedLoads(sources ...Recorded) HeatSpec {
	s := HeatSpec{Name: "recorded-load", Title: "Which experts get the tokens?", RowLabel: "layer", ColumnLabel: "expert",
		Quantity: "load"}
	var cells []cell
	for i, r := range sources {
		s.Grids = append(s.Grids, Grid{Name: r.Name})
		for layer, slots := range r.Layers {
			for e, n := range slots {
				cells = append(cells, cell{i, layer, e, float64(n)})
			}
		}
	}
	s = s.heatOf(cells)
	s.Caption = fmt.Sprintf("%s, %s. Slots, added over all recorded steps. %s", quantity.Count(len(s.Rows), "layer"),
		quantity.Count(len(s.Columns), "expert"), cancels("expert"))
	return s
}

// PhaseTimes is the time of each rank by phase, work and collectives apart. A rank that an arm lacks has an empty
// bar in it.
func PhaseTimes(arms ...Arm) StackSpec {
	s := StackSpec{Name: "phase-time", Title: "Where does each rank's time go?", Per: per(arms),
		Caption: extent(arms) + ". Kernel time; ranks wait in collectives for the last one to arrive."}
	for _, a := range arms {
		k := Stack{Name: a.Name}
		for _, rank := range ranks(arms) {
			bar := Bar{Name: fmt.Sprintf("rank %d", rank)}
			if i := slices.IndexFunc(a.Trace.RankSteps, func(t trace.RankStep) bool { return t.Rank == rank }); i >= 0 {
				t := &a.Trace.RankSteps[i]
				for _, phase := range trace.Phases() {
					bar.Add(string(phase), t.WorkNS[phase].Float64())
				}
				if t.WaitNS.Defined() {
					bar.Add(Transfer, t.TransferNS.Float64())
					bar.Add(Waiting, t.WaitNS.Float64())
				} else {
					bar.Add(Collectives, t.CollectiveNS.Float64())
				}
				if s.Per == "per step" {
					bar.Add(NoKernel, t.NoKernelNS.Float64())
				}
			}
			k.Bars = append(k.Bars, bar)
		}
		s.Arms = append(s.Arms, k)
	}
	return s
}
