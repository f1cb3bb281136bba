package plots

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// PhaseTimes is the time of each rank by phase, work and collectives apart. Phases
// that no arm has are left out; a rank that an arm lacks is unknown in it.
func PhaseTimes(arms ...Arm) StackSpec {
	s := StackSpec{
		Name: "phase-time", Title: "Where does the time of each rank go?", Per: per(arms),
		Caption: timedExtent(arms) + ". Observed kernel time by rank, mean over steps. Work stands above the line, collectives hang below it: " +
			"waiting mirrors the slowest rank's compute, and adding it would double-count.",
	}
	groups := ranks(arms)
	byRank := make([]map[int]perstep.Phases, len(arms))
	for i, a := range arms {
		byRank[i] = map[int]perstep.Phases{}
		for r, p := range a.PerStep.Phases() {
			byRank[i][a.PerStep.Ranks[r]] = p
		}
	}
	for _, phase := range nsys.Phases() {
		has := func(arm map[int]perstep.Phases) bool {
			return slices.ContainsFunc(groups, func(rank int) bool { return arm[rank].Work[phase] > 0 })
		}
		if slices.ContainsFunc(byRank, has) {
			s.Phases = append(s.Phases, string(phase))
		}
	}
	for i, a := range arms {
		k := Stack{Name: a.Name, Ranks: groups, Wait: unknowns(len(groups)), Transfer: unknowns(len(groups))}
		for r, rank := range groups {
			work := unknowns(len(s.Phases))
			if p := byRank[i][rank]; p.Work != nil {
				for j, phase := range s.Phases {
					work[j] = p.Work[nsys.Phase(phase)]
				}
				k.Wait[r], k.Transfer[r] = p.Wait, p.Transfer
				if !known(p.Wait) {
					k.Transfer[r] = p.Collectives
				}
			}
			k.Work = append(k.Work, work)
		}
		s.Arms = append(s.Arms, k)
	}
	s.Alt = phaseAnswer(arms, s.Per)
	return s
}

func phaseAnswer(arms []Arm, per string) string {
	means, over := MeanPhases(arms)
	if over == "" {
		return "No rank has kernel time in every arm."
	}
	var out []string
	for i, m := range means {
		var work []float64
		for _, phase := range nsys.Phases() {
			work = append(work, m.Work[phase])
		}
		waiting := ""
		if known(m.Wait) {
			waiting = fmt.Sprintf(" (%s of it waiting)", quantity.Duration(m.Wait))
		}
		out = append(out, fmt.Sprintf("%s: %s of work and %s in collectives%s %s, mean over %s.",
			arms[i].Name, quantity.Duration(floats.Sum(work)), quantity.Duration(m.Collectives), waiting, per, over))
	}
	return strings.Join(out, " ")
}

// MeanPhases is the mean over ranks of each arm, and which ranks it is over; "" where
// the arms have none in common.
func MeanPhases(arms []Arm) (means []perstep.Phases, over string) {
	var traces []*perstep.Trace
	for _, a := range arms {
		traces = append(traces, a.PerStep)
	}
	means, shared := perstep.MeanPhases(traces...)
	switch {
	case len(shared) == 0:
		return means, ""
	case len(shared) < len(ranks(arms)):
		return means, fmt.Sprintf("the %s that every arm has", quantity.Count(len(shared), "rank"))
	}
	return means, "ranks"
}
