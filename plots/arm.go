package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Arm is a trace under the name that figures show it by: "normal", "perfect",
// or whatever the reader called it. The functions that take arms put them on
// one scale, over the union of their ranks, layers and experts. A rank or step
// that an arm has no kernels of is unknown in it, and divides no mean.
type Arm struct {
	Name  string
	Trace *nsys.Trace
}

// stepsByRank are the numbered steps of each rank that has kernels.
func (a Arm) stepsByRank() map[int]map[int]bool {
	out := map[int]map[int]bool{}
	rank, step := -1, router.Whole(router.None) // neighbouring cells are mostly of one step, and there may be millions
	for _, c := range a.Trace.Cells {
		if out[c.Rank] != nil && c.Rank == rank && c.Step == step {
			continue
		}
		rank, step = c.Rank, c.Step
		if out[rank] == nil {
			out[rank] = map[int]bool{}
		}
		if step.Defined() {
			out[rank][int(step)] = true
		}
	}
	return out
}

// allSteps are the numbered steps that some rank has, ascending.
func (a Arm) allSteps() []int {
	seen := map[int]bool{}
	for _, steps := range a.stepsByRank() {
		maps.Copy(seen, steps)
	}
	return slices.Sorted(maps.Keys(seen))
}

// steps are those that count, which means are over.
func (a Arm) steps() []int { return a.Trace.Times(nil).StepsOf(imbalance.Counts) }

// Stragglers are what each layer loses to its slowest rank, over the steps that
// count.
func (a Arm) Stragglers() []imbalance.Straggler { return a.Trace.Stragglers }

// stepped reports whether the capture marks steps.
func (a Arm) stepped() bool {
	return slices.ContainsFunc(a.Trace.Cells, func(c nsys.Cell) bool { return c.Step.Defined() })
}

// cells are those of steps, or all where the capture marks no steps.
func (a Arm) cells() []nsys.Cell {
	if !a.stepped() {
		return a.Trace.Cells
	}
	steps := position(a.steps())
	var out []nsys.Cell
	for _, c := range a.Trace.Cells {
		if _, ok := steps[int(c.Step)]; ok {
			out = append(out, c)
		}
	}
	return out
}

// divisor turns a sum over the arm's cells into a mean over its steps.
func (a Arm) divisor() float64 { return float64(max(1, len(a.steps()))) }

// per says what divisor divides by.
func per(arms []Arm) string {
	if slices.ContainsFunc(arms, Arm.stepped) {
		return "per step"
	}
	return "in the capture"
}

// work is the time of a cell in kernels that are not collectives.
func work(c nsys.Cell) float64 { return float64(c.TotalNS - c.CollectiveNS) }

// ranks are the ranks of all arms, ascending.
func ranks(arms []Arm) []int {
	seen := map[int]bool{}
	for _, a := range arms {
		for _, r := range a.Trace.Ranks {
			seen[r.Rank] = true
		}
		for r := range a.stepsByRank() {
			seen[r] = true
		}
		for _, e := range a.Trace.Experts {
			seen[e.Rank] = true
		}
		for _, c := range a.Trace.Collectives {
			seen[c.Rank] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// position maps the numbers of a sorted list to their places in it.
func position(numbers []int) map[int]int {
	at := make(map[int]int, len(numbers))
	for i, n := range numbers {
		at[n] = i
	}
	return at
}

// shape is the first half of a caption: ranks, layers and experts, and which
// arms have fewer ranks.
func shape(arms []Arm) string {
	all := ranks(arms)
	text := quantity.Count(len(all), "rank")
	var fewer []string
	for _, a := range arms {
		if own := ranks([]Arm{a}); len(own) < len(all) {
			fewer = append(fewer, fmt.Sprintf("%s has %d", a.Name, len(own)))
		}
	}
	if len(fewer) > 0 {
		text += " (" + strings.Join(fewer, ", ") + ")"
	}
	if layers, experts := expertAxes(arms); len(experts) > 0 {
		text += ", " + quantity.Count(len(layers), "layer") + ", " + quantity.Count(len(experts), "expert")
	}
	return text
}

// timedShape adds the steps that times are means over: Arm.steps, or Arm.allSteps
// for numbers over the whole capture.
func timedShape(arms []Arm, of func(Arm) []int) string {
	var counts []string
	shorter := false
	for _, a := range arms {
		if !a.stepped() {
			continue
		}
		n, all := len(of(a)), len(a.allSteps())
		if n < all {
			counts, shorter = append(counts, fmt.Sprintf("%d of %d", n, all)), true
		} else {
			counts = append(counts, fmt.Sprint(n))
		}
	}
	counts = slices.Compact(counts)
	text := shape(arms)
	switch {
	case len(counts) == 0:
		return text
	case len(counts) == 1 && counts[0] == "1":
		text += ", 1 step"
	default:
		text += ", " + strings.Join(counts, " and ") + " steps"
	}
	if shorter {
		text += " (warm-up and incomplete steps excluded)"
	}
	return text
}

// unknowns is a list of n unknown values.
func unknowns(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = nan
	}
	return out
}
