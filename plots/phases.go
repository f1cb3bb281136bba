package plots

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys"
)

// phaseOrder is the stack from the zero line upwards: what load moves first.
var phaseOrder = []nsys.Phase{
	nsys.PhaseExperts, nsys.PhaseAttention, nsys.PhaseRouter, nsys.PhaseDispatch,
	nsys.PhaseCombine, nsys.PhaseOther, nsys.PhaseUnknown,
}

// PhaseTimes is the time of each rank by phase, work and collectives apart, as
// a mean over steps. Work inside the communication phase counts as other
// compute. Phases that no arm has are left out.
func PhaseTimes(arms ...Arm) StackSpec {
	groups := ranks(arms)
	at := position(groups)
	column := map[nsys.Phase]int{nsys.PhaseCommunication: 5}
	for i, p := range phaseOrder {
		column[p] = i
	}
	s := StackSpec{
		Name: "phase-time", Title: "Where does the time of each rank go?", Per: per(arms),
		Caption: timedShape(arms, Arm.steps) + ". Observed kernel time by rank, mean over steps. Work stands above the line; collectives hang below it, because their wait " +
			"is the shadow of a slower rank's work and would be counted twice if it were added.",
	}
	used := make([]bool, len(phaseOrder))
	for _, a := range arms {
		k := Stack{Name: a.Name, Ranks: groups, Wait: unknowns(len(groups)), Transfer: make([]float64, len(groups))}
		for range groups {
			k.Work = append(k.Work, make([]float64, len(phaseOrder)))
		}
		steps := a.divisor()
		for _, c := range a.cells() {
			phase, ok := column[c.Phase]
			if c.Rank == nsys.None || !ok {
				continue
			}
			k.Work[at[c.Rank]][phase] += work(c) / steps
			k.Transfer[at[c.Rank]] += float64(c.CollectiveNS) / steps
			used[phase] = used[phase] || work(c) > 0
		}
		k.splitWait(a, at)
		s.Arms = append(s.Arms, k)
	}
	s.keep(used)
	s.Alt = s.answer()
	return s
}

// splitWait takes the recorded transfer, as a mean over all steps, out of each
// rank's collective time; the rest is wait. Transfer does not depend on when
// ranks arrive, so start-up does not distort it. Ranks with a collective whose
// wait is unknown stay undivided.
func (k *Stack) splitWait(a Arm, at map[int]int) {
	transfer, total, inSteps := make([]float64, len(k.Ranks)), make([]float64, len(k.Ranks)), make([]float64, len(k.Ranks))
	for _, c := range a.Trace.Collectives {
		if c.Rank != nsys.None {
			transfer[at[c.Rank]] += c.TransferNS.Float64()
			total[at[c.Rank]] += float64(c.TotalNS)
		}
	}
	steps := a.allSteps()
	for _, c := range a.Trace.Cells {
		if c.Rank != nsys.None && (c.Step != nsys.None || len(steps) == 0) {
			inSteps[at[c.Rank]] += float64(c.CollectiveNS)
		}
	}
	for r, both := range k.Transfer {
		if known(transfer[r]) && total[r] > 0 {
			perStep := transfer[r] * inSteps[r] / total[r] / float64(max(1, len(steps)))
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
			var kept []float64
			for i, v := range all {
				if used[i] {
					kept = append(kept, v)
				}
			}
			a.Work[r] = kept
		}
	}
}

func (s StackSpec) answer() string {
	var out []string
	for _, a := range s.Arms {
		work, collective := 0.0, sumDrawable(a.Wait...)+sumDrawable(a.Transfer...)
		for _, w := range a.Work {
			work += sumDrawable(w...)
		}
		n := float64(max(1, len(a.Ranks)))
		text := fmt.Sprintf("%s: %s of work and %s in collectives, mean over ranks %s", a.Name, Duration(work/n), Duration(collective/n), s.Per)
		if known(meanKnown(a.Wait)) {
			text += fmt.Sprintf(", of which %s waiting", Duration(sumDrawable(a.Wait...)/n))
		}
		out = append(out, text+".")
	}
	return strings.Join(out, " ")
}
