package plots

import (
	"slices"

	"github.com/moebalance/moebalance/compare/nsys"
)

// phaseOrder is the stack from the zero line upwards: what load moves first.
var phaseOrder = []nsys.Phase{
	nsys.PhaseExperts, nsys.PhaseAttention, nsys.PhaseRouter, nsys.PhaseDispatch,
	nsys.PhaseCombine, nsys.PhaseOther, nsys.PhaseUnknown,
}

// stackedAs is the place in phaseOrder of a phase's work. Work inside the
// communication phase counts as other compute, that of a phase which a trace
// does not have as unknown.
func stackedAs(p nsys.Phase) int {
	if p == nsys.PhaseCommunication {
		p = nsys.PhaseOther
	}
	if at := slices.Index(phaseOrder, p); at >= 0 {
		return at
	}
	return slices.Index(phaseOrder, nsys.PhaseUnknown)
}

// PhaseTimes is the time of each rank by phase, work and collectives apart, as
// a mean over steps. Phases that no arm has are left out; a rank that an arm
// lacks is unknown in it.
func PhaseTimes(arms ...Arm) StackSpec {
	groups := ranks(arms)
	s := StackSpec{
		Name: "phase-time", Title: "Where does the time of each rank go?", Per: per(arms),
		Caption: timedShape(arms, Arm.steps) + ". Observed kernel time by rank, mean over steps. Work stands above the line; collectives hang below it, because their wait " +
			"is the shadow of a slower rank's work and would be counted twice if it were added.",
	}
	used := make([]bool, len(phaseOrder))
	for _, a := range arms {
		k := Stack{Name: a.Name, Ranks: groups, Work: make([][]float64, len(groups)), Wait: unknowns(len(groups)), Transfer: unknowns(len(groups))}
		at, steps := position(groups), a.divisor()
		for _, c := range a.cells() {
			rank, phase := at[c.Rank], stackedAs(c.Phase)
			if k.Work[rank] == nil { // what a rank that is there does not do takes no time
				k.Work[rank], k.Transfer[rank] = make([]float64, len(phaseOrder)), 0
			}
			k.Work[rank][phase] += work(c) / steps
			k.Transfer[rank] += float64(c.CollectiveNS) / steps
			used[phase] = used[phase] || work(c) > 0
		}
		k.splitWait(a)
		s.Arms = append(s.Arms, k)
	}
	s.keep(used)
	s.Alt = s.answer()
	return s
}

// splitWait takes the recorded transfer, as a mean over all steps of a rank, out
// of the rank's collective time; the rest is wait. Transfer does not depend on
// when ranks arrive, so start-up does not distort it. Ranks with a collective
// whose wait is unknown stay undivided.
func (k *Stack) splitWait(a Arm) {
	at, steps := position(k.Ranks), a.stepsByRank()
	transfer, total, inSteps := make([]float64, len(k.Ranks)), make([]float64, len(k.Ranks)), make([]float64, len(k.Ranks))
	for _, c := range a.Trace.Collectives {
		transfer[at[c.Rank]] += c.TransferNS.Float64()
		total[at[c.Rank]] += float64(c.TotalNS)
	}
	stepped := a.stepped()
	for _, c := range a.Trace.Cells {
		if c.Step.Defined() || !stepped {
			inSteps[at[c.Rank]] += float64(c.CollectiveNS)
		}
	}
	for r, both := range k.Transfer {
		if known(both) && known(transfer[r]) && total[r] > 0 {
			perStep := transfer[r] * inSteps[r] / total[r] / float64(max(1, len(steps[k.Ranks[r]])))
			k.Transfer[r] = min(both, perStep)
			k.Wait[r] = both - k.Transfer[r]
		}
	}
}

// keep drops the phases that are not used.
func (s *StackSpec) keep(used []bool) {
	for i, p := range phaseOrder {
		if used[i] {
			s.Phases = append(s.Phases, string(p))
		}
	}
	for _, a := range s.Arms {
		for r, all := range a.Work {
			kept := unknowns(len(s.Phases))
			next := 0
			for i, v := range all {
				if used[i] {
					kept[next] = v
					next++
				}
			}
			a.Work[r] = kept
		}
	}
}
