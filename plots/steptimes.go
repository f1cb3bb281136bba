package plots

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys"
)

// StepTimes is the compute time of every numbered step, over all layers: the
// slowest rank's and the mean over the ranks that have any.
func StepTimes(arms ...Arm) StepSpec {
	s := StepSpec{
		Name: "step-time", Title: "How far is the slowest rank from the mean in each step?",
		Caption: timedShape(arms, Arm.allSteps) + ". Observed kernel time of a rank in a step over all layers, collectives left out. Where ranks meet in every layer the loss per layer adds up to more than this gap.",
	}
	var answers []string
	for _, a := range arms {
		numbers := a.allSteps()
		at := position(numbers)
		byRank := map[int][]float64{}
		for _, c := range a.Trace.Cells {
			if c.Step == nsys.None || c.Rank == nsys.None {
				continue
			}
			if byRank[c.Rank] == nil {
				byRank[c.Rank] = unknowns(len(numbers))
			}
			addKnown(&byRank[c.Rank][at[c.Step]], work(c))
		}
		k := Steps{Name: a.Name, Numbers: numbers}
		for i := range numbers {
			var times []float64
			for _, r := range ranks([]Arm{a}) {
				if byRank[r] != nil {
					times = append(times, byRank[r][i])
				}
			}
			k.MaxNS = append(k.MaxNS, largest(times))
			k.MeanNS = append(k.MeanNS, meanKnown(times))
		}
		s.Arms = append(s.Arms, k)
		if gap := meanKnown(k.MaxNS) - meanKnown(k.MeanNS); known(gap) {
			answers = append(answers, fmt.Sprintf("%s: on average the slowest rank computes %s longer per step than the mean rank.", a.Name, Duration(gap)))
		}
	}
	s.Alt = strings.Join(answers, " ")
	return s
}
