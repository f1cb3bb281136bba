package plots

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// Arm is a trace under the name that figures show it by: "learned routing", "balanced
// routing", or the name of its input. The functions that take arms put them on one scale,
// over the union of their ranks, layers and experts. A rank or step of which an arm has no
// kernels is unknown in it.
type Arm struct {
	Name    string
	Trace   *trace.Trace
	PerStep *trace.PerStep
}

// NewArm averages the trace over its steps.
func NewArm(name string, t *trace.Trace) Arm { return Arm{name, t, t.PerStep()} }

// panelTitle is the title of the panel of one of several arms; a single panel needs none.
func panelTitle(name string, arms int) string {
	if arms == 1 {
		return ""
	}
	return name
}

// per is the basis of times: a step, or the capture where no step is marked.
func per(arms []Arm) string {
	if slices.ContainsFunc(arms, func(a Arm) bool { return a.PerStep.Marked() }) {
		return "per step"
	}
	return "in the capture"
}

// ranks are the ranks of all arms, ascending.
func ranks(arms []Arm) []int {
	var all []int
	for _, a := range arms {
		all = append(all, a.PerStep.Ranks...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// spread puts values of the arm's ranks at their places among all ranks.
func (a Arm) spread(values []float64, all []int) []float64 {
	at, out := position(all), unknowns(len(all))
	for i, rank := range a.PerStep.Ranks {
		out[at[rank]] = values[i]
	}
	return out
}

// position maps the numbers of a sorted list to their places in it: 3, 5 → {3: 0, 5: 1}.
func position(numbers []int) map[int]int {
	at := make(map[int]int, len(numbers))
	for i, n := range numbers {
		at[n] = i
	}
	return at
}

func sortedKeys[V any](set map[int]V) []int { return slices.Sorted(maps.Keys(set)) }

// extent is the first part of a caption: "4 ranks, mean over 3 of 4 and 3 steps".
func extent(arms []Arm) string {
	text := quantity.Count(len(ranks(arms)), "rank")
	var counts []string
	for _, a := range arms {
		n, all := len(a.PerStep.Times.StepsOf(imbalance.Counts)), len(a.PerStep.Times.Steps)
		switch count := fmt.Sprint(n); {
		case !a.PerStep.Marked():
		case n < all:
			counts = append(counts, fmt.Sprintf("%d of %d", n, all))
		default:
			counts = append(counts, count)
		}
	}
	if counts = slices.Compact(counts); len(counts) == 0 {
		return text
	}
	if text += ", mean over " + counts[0]; len(counts) > 1 {
		text += " and " + counts[1]
	}
	return text + " steps"
}

// cancels is the caveat of every figure that adds up steps before it compares.
func cancels(part string) string {
	return fmt.Sprintf("A hot %s that changes from step to step cancels here, and not in the answer and the tables.", part)
}

// RankLayerTimes is the heat map of expert time by layer and rank.
func RankLayerTimes(arms ...Arm) HeatSpec {
	columns, seen := ranks(arms), map[int]bool{}
	for _, a := range arms {
		for layer := range a.PerStep.ExpertsByLayer() {
			seen[layer] = true
		}
	}
	layers := sortedKeys(seen)
	s := HeatSpec{
		Name: "rank-layer-time", Title: "Which rank is slow in which layer?",
		RowLabel: "layer", ColumnLabel: "rank", Quantity: "expert time",
		Caption: extent(arms) + ". " + cancels("rank"),
	}
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, columns)
		for layer, times := range a.PerStep.ExpertsByLayer() {
			g.Values[position(layers)[layer]] = a.spread(times, columns)
		}
		s.Grids = append(s.Grids, g)
	}
	return s
}

// ExpertTimes is the heat map of time by layer and expert. An expert on several ranks has
// the sum over its copies. The caption says whether times are observed or allocated.
func ExpertTimes(arms ...Arm) HeatSpec {
	s := HeatSpec{Name: "expert-time", Title: "Which experts take long?", RowLabel: "layer", ColumnLabel: "expert",
		Quantity: "time"}
	seenLayers, seenExperts := map[int]bool{}, map[int]bool{}
	basis := "Times are observed: kernels launched inside the expert's own range."
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			seenLayers[int(e.Layer)], seenExperts[e.Expert] = true, true
			if e.Basis == imbalance.Allocated {
				basis = "Times are allocated: the time of grouped kernels split by load, which is a model."
			}
		}
	}
	s.Caption = fmt.Sprintf("%s. %s %s", extent(arms), basis, cancels("expert"))
	layers, experts := sortedKeys(seenLayers), sortedKeys(seenExperts)
	rows, columns := position(layers), position(experts)
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, experts)
		for _, e := range a.PerStep.Experts() {
			if cell := &g.Values[rows[int(e.Layer)]][columns[e.Expert]]; drawable(e.TimeNS) {
				if !known(*cell) {
					*cell = 0
				}
				*cell += e.TimeNS
			}
		}
		s.Grids = append(s.Grids, g)
	}
	return s
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
	seen, experts := map[int]bool{}, 0
	for _, r := range sources {
		for layer, slots := range r.Layers {
			seen[layer] = true
			experts = max(experts, len(slots))
		}
	}
	layers, columns := sortedKeys(seen), upTo(experts)
	s := HeatSpec{
		Name: "recorded-load", Title: "Which experts get the tokens?",
		RowLabel: "layer", ColumnLabel: "expert", Quantity: "load",
		Caption: fmt.Sprintf("%s, %s. Slots, added over all recorded steps. %s", quantity.Count(len(layers), "layer"),
			quantity.Count(experts, "expert"), cancels("expert")),
	}
	for _, r := range sources {
		g := unknownGrid(r.Name, layers, columns)
		for i, layer := range layers {
			for e, n := range r.Layers[layer] {
				g.Values[i][e] = float64(n)
			}
		}
		s.Grids = append(s.Grids, g)
	}
	return s
}

// PhaseTimes is the time of each rank by phase, work and collectives apart. Phases that no
// arm has are left out; a rank that an arm lacks is unknown in it.
func PhaseTimes(arms ...Arm) StackSpec {
	s := StackSpec{Name: "phase-time", Title: "Where does each rank's time go?", Per: per(arms),
		Caption: extent(arms) + ". Kernel time; ranks wait in collectives for the last one to arrive."}
	groups := ranks(arms)
	byRank := make([]map[int]trace.RankPhases, len(arms))
	for i, a := range arms {
		byRank[i] = map[int]trace.RankPhases{}
		for r, p := range a.PerStep.Phases() {
			byRank[i][a.PerStep.Ranks[r]] = p
		}
	}
	for _, phase := range trace.Phases() {
		has := func(arm map[int]trace.RankPhases) bool {
			return slices.ContainsFunc(groups, func(rank int) bool { return arm[rank].Work[phase] > 0 })
		}
		if slices.ContainsFunc(byRank, has) {
			s.Phases = append(s.Phases, string(phase))
		}
	}
	for i, a := range arms {
		k := Stack{Name: a.Name, Transfer: unknowns(len(groups)), Wait: unknowns(len(groups)), Idle: unknowns(len(groups))}
		for r, rank := range groups {
			k.Bars = append(k.Bars, fmt.Sprintf("rank %d", rank))
			work := unknowns(len(s.Phases))
			if p := byRank[i][rank]; p.Work != nil {
				for j, phase := range s.Phases {
					work[j] = p.Work[trace.Phase(phase)]
				}
				k.Wait[r], k.Transfer[r] = p.Wait, p.Transfer
				if !known(p.Wait) {
					k.Transfer[r] = p.Collectives
				}
			}
			k.Work = append(k.Work, work)
		}
		for _, idle := range a.Trace.Idle {
			if r := slices.Index(groups, idle.Rank); r >= 0 && s.Per == "per step" {
				k.Idle[r] = idle.NoKernelNS.Float64()
			}
		}
		s.Arms = append(s.Arms, k)
	}
	return s
}
