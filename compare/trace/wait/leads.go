package wait

import "github.com/moebalance/moebalance/router"

// Shares of a step.
const (
	leastLeading = 0.10 // from which waiting for late launches leads, where experts are even
	leastWait    = 0.01 // from which waiting matters
)

// Leads reports that late launches, more than the loss by uneven experts, are what to look at
// first: waiting for them takes a tenth of the step, or a hundredth where experts are uneven
// too. All times are per step.
func (w *Waiting) Leads(lossNS, stepNS router.Number, uneven bool) bool {
	late := min(w.NS, w.WaitNS) // what the last rank has less of makes up for more
	return w.Name == LateHosts && late > lossNS &&
		(late > leastLeading*stepNS || uneven && late > leastWait*stepNS)
}

// Matters reports that ranks wait a hundredth of the step or more.
func (w *Waiting) Matters(stepNS router.Number) bool {
	return w.WaitNS > leastWait*stepNS && len(w.Ranks) > 0
}

// FewLate is how many late steps hold more than half of all waiting, 0 if they do not, and
// whether they are of one rank.
func (w *Waiting) FewLate() (steps int, same bool) {
	var late router.Number
	same = true
	for _, l := range w.Late {
		late += l.WaitNS
		same = same && l.Rank == w.Late[0].Rank
	}
	if 2*late > w.WaitNS*router.Number(w.Steps) {
		return len(w.Late), same
	}
	return 0, false
}
