package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// Arm is a trace under the name that figures show it by: "normal", "perfect", or
// the name of its input. The functions that take arms put them on one scale, over
// the union of their ranks, layers and experts. A rank or step of which an arm has no
// kernels is unknown in it.
type Arm struct {
	Name    string
	Trace   *nsys.Trace
	PerStep *perstep.Trace
}

// OneTrace names a trace of no arm, or counts, that stand alone. Figures need not repeat it.
const OneTrace = "the trace"

// NewArm averages the trace over its steps.
func NewArm(name string, t *nsys.Trace) Arm { return Arm{name, t, perstep.Of(t)} }

// panelTitle is the title of the panel of one of several arms.
func panelTitle(name string, arms int) string {
	if arms == 1 && name == OneTrace {
		return ""
	}
	return name
}

// findings are what a figure shows of each arm, for its title.
type findings []string

func (f *findings) add(arm, text string) {
	if arm != OneTrace {
		text += " (" + arm + ")"
	}
	*f = append(*f, text)
}

// of begins with what the findings are about.
func (f findings) of(quantity string) string {
	return strings.ToUpper(quantity[:1]) + quantity[1:] + ": " + strings.Join(f, "; ")
}

// expertTime begins a sentence on what the arms' expert time is the time of.
func expertTime(arms []Arm) string {
	for _, a := range arms {
		if a.PerStep.Times.Of != imbalance.OfGEMM {
			return "Expert time"
		}
	}
	return "Expert GEMM time"
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

// position maps the numbers of a sorted list to their places in it.
func position(numbers []int) map[int]int {
	at := make(map[int]int, len(numbers))
	for i, n := range numbers {
		at[n] = i
	}
	return at
}

func sortedKeys[V any](set map[int]V) []int { return slices.Sorted(maps.Keys(set)) }

// extent is the first part of a caption: ranks, layers and experts, and which arms
// have fewer ranks.
func extent(arms []Arm) string {
	all := ranks(arms)
	text := quantity.Count(len(all), "rank")
	var fewer []string
	for _, a := range arms {
		if own := len(a.PerStep.Ranks); own < len(all) {
			fewer = append(fewer, fmt.Sprintf("%s has %d", a.Name, own))
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

// timedExtent adds the number of steps that times are means over.
func timedExtent(arms []Arm) string {
	var counts []string
	var excluded, inferred bool
	without := map[imbalance.Exclusion]bool{}
	for _, a := range arms {
		inferred = inferred || a.PerStep.Inferred()
		if !a.PerStep.Marked() {
			continue
		}
		times := a.PerStep.Times
		n, all := len(times.StepsOf(imbalance.Counts)), len(times.Steps)
		if n < all {
			counts, excluded = append(counts, fmt.Sprintf("%d of %d", n, all)), true
			for _, step := range times.Steps {
				without[step.Excluded] = true
			}
		} else {
			counts = append(counts, fmt.Sprint(n))
		}
	}
	counts = slices.Compact(counts)
	text := extent(arms)
	switch {
	case len(counts) == 0:
		return text
	case len(counts) == 1 && counts[0] == "1":
		text += ", 1 step"
	default:
		text += ", " + strings.Join(counts, " and ") + " steps"
	}
	if excluded {
		var reasons []string
		for _, r := range []struct {
			why  bool
			text string
		}{{without[imbalance.WarmUp], "warm-up"}, {without[imbalance.OtherKind], "steps of other kinds"},
			{without[imbalance.Incomplete] || without[imbalance.Lost], "incomplete steps"}} {
			if r.why {
				reasons = append(reasons, r.text)
			}
		}
		text += " (" + strings.Join(reasons, " and ") + " excluded)"
	}
	if inferred {
		text += "; layers inferred from the repetition of kernels"
	}
	return text
}
