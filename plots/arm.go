package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys"
)

// Arm is a trace under the name that figures show it by: "normal", "perfect",
// or whatever the reader called it. The functions that take arms put them on
// one scale, over the union of their ranks, layers and experts.
type Arm struct {
	Name  string
	Trace *nsys.Trace
	// StartUp are steps in which the ranks were still entering the capture. They
	// stay out of means over steps.
	StartUp []int
}

// allSteps are the numbered steps of the arm's cells, ascending.
func (a Arm) allSteps() []int {
	seen := map[int]bool{}
	last := nsys.None // neighbouring cells are mostly of one step, and there may be millions
	for _, c := range a.Trace.Cells {
		if c.Step != last {
			seen[c.Step] = true
			last = c.Step
		}
	}
	delete(seen, nsys.None)
	return slices.Sorted(maps.Keys(seen))
}

// steps are those without start-up.
func (a Arm) steps() []int {
	return slices.DeleteFunc(a.allSteps(), func(step int) bool { return slices.Contains(a.StartUp, step) })
}

// cells are those of steps, or all where the capture marks no steps.
func (a Arm) cells() []nsys.Cell {
	steps := position(a.steps())
	if len(steps) == 0 {
		return a.Trace.Cells
	}
	var out []nsys.Cell
	for _, c := range a.Trace.Cells {
		if _, ok := steps[c.Step]; ok {
			out = append(out, c)
		}
	}
	return out
}

// divisor turns a sum over the arm's cells into a mean over its steps.
func (a Arm) divisor() float64 { return float64(max(1, len(a.steps()))) }

// per says what divisor divides by.
func per(arms []Arm) string {
	for _, a := range arms {
		if len(a.steps()) > 0 {
			return "per step"
		}
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
		last := nsys.None
		for _, c := range a.Trace.Cells {
			if c.Rank != last {
				seen[c.Rank] = true
				last = c.Rank
			}
		}
		for _, e := range a.Trace.Experts {
			seen[e.Rank] = true
		}
		for _, c := range a.Trace.Collectives {
			seen[c.Rank] = true
		}
	}
	delete(seen, nsys.None)
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

// shape is the first half of a caption: ranks, layers and experts.
func shape(arms []Arm) string {
	parts := []string{plural(len(ranks(arms)), "rank")}
	if layers, experts := expertAxes(arms); len(experts) > 0 {
		parts = append(parts, plural(len(layers), "layer"), plural(len(experts), "expert"))
	}
	return strings.Join(parts, ", ")
}

// timedShape adds the steps that times are means over: Arm.steps, or
// Arm.allSteps for numbers that the trace itself took over all of them.
func timedShape(arms []Arm, of func(Arm) []int) string {
	var counts []string
	shorter := false
	for _, a := range arms {
		n := len(of(a))
		if n > 0 {
			counts = append(counts, fmt.Sprint(n))
		}
		shorter = shorter || n < len(a.allSteps())
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
		text += " after start-up"
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// unknowns is a list of n unknown values.
func unknowns(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = nan
	}
	return out
}
