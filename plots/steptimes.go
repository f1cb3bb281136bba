package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StepTimes is the compute time of every numbered step, over all layers: the
// slowest rank's and the mean over ranks. In a step that some rank lacks both
// are unknown.
func StepTimes(arms ...Arm) StepSpec {
	s := StepSpec{
		Name: "step-time", Title: "How far is the slowest rank from the mean in each step?",
		Caption: timedShape(arms, Arm.wholeSteps) + ". Observed kernel time of a rank in a step over all layers, collectives left out. Where ranks meet in every layer the loss per layer adds up to more than this gap.",
	}
	var answers []string
	for _, a := range arms {
		k := a.stepTimes()
		s.Arms = append(s.Arms, k)
		if gap := meanKnown(k.MaxNS) - meanKnown(k.MeanNS); known(gap) {
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
	for _, step := range a.wholeSteps() {
		times := slices.Sorted(maps.Values(byStep[step]))
		k.MaxNS[at[step]], k.MeanNS[at[step]] = times[len(times)-1], meanKnown(times)
	}
	return k
}
