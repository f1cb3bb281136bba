package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
)

// StepTimes is the compute time of every numbered step, over all layers: the
// slowest rank's and the mean over ranks. In a step that is not
// complete both are unknown.
func StepTimes(arms ...Arm) StepSpec {
	s := StepSpec{
		Name: "step-time", Title: "How far is the slowest rank from the mean in each step?",
		Caption: timedShape(arms, Arm.steps) + ". Observed kernel time of a rank in a step over all layers, collectives left out. Where ranks meet in every layer the loss per layer adds up to more than this gap.",
	}
	var answers []string
	for _, a := range arms {
		k := a.stepTimes()
		s.Arms = append(s.Arms, k)
		if gap := a.meanGap(k); known(gap) {
			answers = append(answers, fmt.Sprintf("%s: on average the slowest rank computes %s longer per step than the mean rank.", a.Name, Duration(gap)))
		}
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

func (a Arm) stepTimes() Steps {
	numbers := a.allSteps()
	k := Steps{Name: a.Name, Numbers: numbers, MaxNS: unknowns(len(numbers)), MeanNS: unknowns(len(numbers))}
	byStep := map[int]map[int]float64{} // step, rank
	for _, c := range a.Trace.Cells {
		if byStep[int(c.Step)] == nil {
			byStep[int(c.Step)] = map[int]float64{}
		}
		byStep[int(c.Step)][c.Rank] += work(c)
	}
	at := position(numbers)
	t := a.Trace.Times(nil)
	for _, step := range slices.Concat(t.StepsOf(imbalance.WarmUp), t.StepsOf(imbalance.Counts)) {
		if i, numbered := at[step]; numbered {
			times := slices.Sorted(maps.Values(byStep[step]))
			k.MaxNS[i], k.MeanNS[i] = times[len(times)-1], meanKnown(times)
		}
	}
	return k
}

// meanGap is the mean of slowest − mean over the steps that count.
func (a Arm) meanGap(k Steps) float64 {
	var gaps []float64
	for _, step := range a.steps() {
		if i := slices.Index(k.Numbers, step); i >= 0 {
			gaps = append(gaps, k.MaxNS[i]-k.MeanNS[i])
		}
	}
	return meanKnown(gaps)
}
